import type { Caller } from "./caller.ts";
import type { AuthInfo, ServerContext } from "./protocol.ts";
import type { RequestLine } from "./request-line.ts";

/** What is known of a request besides what it asks for. */
export interface RequestScope {
  caller: Caller;
  line: RequestLine;
}

/** The scope in the form in which the SDK hands it on to request handlers. */
export function authInfoOf(scope: RequestScope): AuthInfo {
  return { token: "", clientId: scope.caller.label, scopes: [], extra: { scope } };
}

/** The scope of the request that `context` is about. */
export function scopeOf({ http }: Pick<ServerContext, "http">): RequestScope {
  return http?.authInfo?.extra?.scope as RequestScope;
}
