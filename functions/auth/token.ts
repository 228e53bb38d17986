import type { Caller } from "../caller.ts";

/** What an access token stands for. */
export interface Verified {
  caller: Caller;
  scopes: readonly string[];
}

/** A token is not acceptable; `code` is the error code of RFC 6750, the message is for whoever sent it. */
export class TokenRefused extends Error {
  override name = "TokenRefused";
  readonly code: "invalid_token" | "insufficient_scope";

  constructor(message: string, code: TokenRefused["code"] = "invalid_token") {
    super(message);
    this.code = code;
  }
}
