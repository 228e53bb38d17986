/** Tokens that the operator hands out. Only their hashes are known here. */
import { type AuthInfo, OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import { callerOf } from "../caller.ts";
import type { Token } from "./config.ts";

/** What workerd has besides the standard. */
type WorkerdCrypto = SubtleCrypto & { timingSafeEqual(a: BufferSource, b: BufferSource): boolean };

export class BearerVerifier {
  readonly #tokens: readonly { hash: Uint8Array<ArrayBuffer>; info: Promise<AuthInfo> }[];

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens.map(({ name, sha256 }) => ({ hash: fromHex(sha256), info: authInfo(name) }));
  }

  /** @throws {OAuthError} when it is none of the tokens */
  async verify(token: string): Promise<AuthInfo> {
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token));
    const { timingSafeEqual } = crypto.subtle as WorkerdCrypto;
    // Every one is compared: how long it takes tells nothing of which it was.
    const [match] = this.#tokens.filter((known) => timingSafeEqual.call(crypto.subtle, known.hash, hash));
    if (!match) throw new OAuthError(OAuthErrorCode.InvalidToken, "The token is not known");
    return match.info;
  }
}

async function authInfo(name: string): Promise<AuthInfo> {
  // Such a token is good until it is taken out of the configuration.
  const expiresAt = Number.POSITIVE_INFINITY;
  return { token: "", clientId: name, scopes: [], expiresAt, extra: { caller: await callerOf(name, name) } };
}

function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
