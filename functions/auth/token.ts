import type { Caller } from "../../core/definitions/caller.ts";

/** What an access token stands for. */
export interface Verified {
  caller: Caller;
  /** As the issuer names the caller: the subject of its token, or its name. */
  subject: string;
  scopes: readonly string[];
  /** When the token expires, in milliseconds since the epoch; undefined for one that does not. */
  expires?: number;
}

/** The error codes of RFC 6750; `missing` is for a request without a token, which is told none. */
export type RefusalCode = "missing" | "invalid_request" | "invalid_token" | "insufficient_scope";

/** A token is not acceptable; the message is for whoever sent it. */
export class TokenRefused extends Error {
  override name = "TokenRefused";
  readonly code: RefusalCode;

  constructor(message: string, code: RefusalCode = "invalid_token") {
    super(message);
    this.code = code;
  }
}
