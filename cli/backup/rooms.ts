/** The callers' objects of a data directory, which an edge of its own reads and writes: only workerd knows how they are stored. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prebuiltEdge } from "../build/prebuilt-edge.ts";
import { spawnEdge } from "../launcher/local-edge.ts";
import { newToken } from "../static-token.ts";
import { FILES } from "../wrap/wrap-files.ts";
import { OperatorClient } from "./operator-client.ts";

/** Nothing listens there: what objects do by themselves, they leave for later. */
const NOWHERE = "http://127.0.0.1:9";

export interface Rooms extends AsyncDisposable {
  client: OperatorClient;
}

/** Undefined where the directory has no objects, unless `makes`. No stack may run with it. */
export async function openRooms(data: string, makes: boolean): Promise<Rooms | undefined> {
  const objects = join(data, "objects");
  if (!makes && !existsSync(objects)) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "rooms-"));
  const server = { name: "rooms", version: "1.0.0" };
  await writeFile(join(folder, FILES.options), JSON.stringify({ name: "rooms", url: NOWHERE }));
  await writeFile(join(folder, FILES.snapshot), JSON.stringify({ server, revision: "", resources: false, tools: [] }));
  const { token, sha256 } = newToken();
  const bindings = {
    RESONATE_URL: NOWHERE,
    RESONATE_NAMESPACE: process.env.RESONATE_NAMESPACE ?? "",
    OPERATOR_TOKENS: JSON.stringify([{ name: "backup", sha256 }]),
    // Callers' subscriptions do not end for want of a token.
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: "https://nowhere.invalid",
    ALLOWED_HOSTS: "127.0.0.1",
    TASK_KEY: randomBytes(32).toString("hex"),
    LOG_LEVEL: "error",
  };
  const { process: edge, listening } = await spawnEdge(await prebuiltEdge(folder), {
    port: 0,
    data: objects,
    bindings,
  });
  const end = async () => {
    edge.stop();
    await edge.exited;
    await rm(folder, { recursive: true, force: true });
  };
  const port = await listening.catch(async (error) => {
    await end();
    throw error;
  });
  return { client: new OperatorClient(`http://127.0.0.1:${port}`, token), [Symbol.asyncDispose]: end };
}
