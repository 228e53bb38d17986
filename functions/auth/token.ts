import type { Caller } from "../../core/definitions/caller.ts";

/** The content of a verified access token. */
export interface Verified {
  caller: Caller;
  scopes: readonly string[];
  /** When the token expires, in milliseconds since the epoch; undefined for one that does not. */
  expires?: number;
}

/** The error codes of RFC 6750, and `missing` for a request without a token. */
export type RefusalCode = "missing" | "invalid_request" | "invalid_token" | "insufficient_scope";

/** A token is not acceptable. The message is for its sender. */
export class TokenRefused extends Error {
  override name = "TokenRefused";
  readonly code: RefusalCode;

  constructor(message: string, code: RefusalCode = "invalid_token") {
    super(message);
    this.code = code;
  }
}
