import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newToken, TOKEN_NAME } from "../static-token.ts";
import { thisUser } from "../this-user.ts";

/** The first caller of a deployment. Only this user can read the file with its secrets; disposing of it removes the file. */
export interface FirstCaller extends AsyncDisposable {
  readonly name: string;
  readonly token: string;
  readonly secretsFile: string;
}

/** Creates a caller for a deployment without callers, named after the user of this machine by default. */
export async function firstCaller(name = ownName()): Promise<FirstCaller> {
  const { token, sha256 } = newToken();
  const dir = await mkdtemp(join(tmpdir(), "deploy-"));
  const secretsFile = join(dir, "secrets.json");
  const secrets = { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify([{ name, sha256 }]) };
  await writeFile(secretsFile, JSON.stringify(secrets), { mode: 0o600 });
  return { name, token, secretsFile, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

/** The name of this user, changed to a valid caller name. */
function ownName(): string {
  const name = thisUser()
    ?.replace(/[^\w.@-]/g, "_")
    .slice(0, 64);
  return name !== undefined && TOKEN_NAME.test(name) ? name : "owner";
}
