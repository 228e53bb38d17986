/** `token NAME`: a new static token, shown once, and what the edge is told of it. */
import { createHash, randomBytes } from "node:crypto";
import { readProject, typed } from "../project.ts";

/** Whose a token is. */
export const TOKEN_NAME = /^[\w.@][\w.@-]{0,63}$/;

/** A token that nobody can guess, and what the edge is told of it. */
export function newToken(): { token: string; sha256: string } {
  const token = `dme_${randomBytes(32).toString("base64url")}`;
  return { token, sha256: createHash("sha256").update(token).digest("hex") };
}

export async function run([name, ...rest]: string[]): Promise<void> {
  const usage = `Usage: ${typed(readProject(), "token", "NAME")}

NAME is whose token it is: 1 to 64 letters, digits, ".", "_", "@" or "-", not "-" first.`;
  if (name === "--help") return console.log(usage);
  if (name === undefined || rest.length > 0 || !TOKEN_NAME.test(name)) {
    console.error(usage);
    process.exit(2);
  }

  const { token, sha256 } = newToken();
  console.log(`Token for ${name}, which is stored nowhere and not shown again:

  ${token}

Add this to the list in the secret BEARER_TOKENS (a JSON list, wrangler secret put BEARER_TOKENS):

  ${JSON.stringify({ name, sha256 })}`);
}
