/** Tokens that the operator hands out, of which only hashes are known here. */
import { callerOf } from "../../core/definitions/caller.ts";
import type { Token } from "./auth-config.ts";
import { isSame } from "./secret.ts";
import { TokenRefused, type Verified } from "./token.ts";

/** Verifies a token. @throws {TokenRefused} for an unknown one */
export function bearerVerifier(tokens: readonly Token[]): (token: string) => Promise<Verified> {
  const known = tokens.map(({ name, sha256 }) => ({ name, hash: fromHex(sha256) }));
  return async (token) => {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
    // All are compared, so that the time taken does not tell which one matched.
    const [match] = known.filter((each) => isSame(each.hash, hash));
    if (!match) throw new TokenRefused("The token is not known");
    return { caller: await callerOf(match.name, match.name), scopes: [] };
  };
}

function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
