/** Tokens that the operator hands out. Only their hashes are known here. */
import { callerOf } from "../caller.ts";
import { isSame } from "../secret.ts";
import type { Token } from "./config.ts";
import { TokenRefused, type Verified } from "./token.ts";

export class BearerVerifier {
  readonly #tokens: readonly { hash: Uint8Array<ArrayBuffer>; verified: Promise<Verified> }[];

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens.map(({ name, sha256 }) => ({ hash: fromHex(sha256), verified: verified(name) }));
  }

  /** @throws {TokenRefused} when it is none of the tokens */
  async verify(token: string): Promise<Verified> {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
    // Every one is compared: how long it takes tells nothing of which it was.
    const [match] = this.#tokens.filter((known) => isSame(known.hash, hash));
    if (!match) throw new TokenRefused("The token is not known");
    return match.verified;
  }
}

async function verified(name: string): Promise<Verified> {
  return { caller: await callerOf(name, name), scopes: [] };
}

function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
