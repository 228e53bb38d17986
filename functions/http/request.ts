import type { Caller } from "../../core/definitions/caller.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { AuthInfo, ServerContext } from "../../core/tools/mcp.ts";
import type { RequestLine } from "./request-line.ts";
import type { StreamPlace } from "./streams.ts";

/** What is known of a request besides what it asks for. */
export interface RequestScope {
  caller: Caller;
  /** The jobs, as this caller sees them, for this request alone. */
  store: RemoteStore;
  line: RequestLine;
  /** When its stream ends at the latest, in milliseconds since the epoch: its token has expired by then. */
  until: number;
  /** Its stream's place among those of its caller. */
  place(): StreamPlace;
  /** Whether its client's revision knows links to resources in results; older SDKs refuse a result for one. */
  links: boolean;
}

/** What a request does with jobs: looks at them, or starts, answers or stops them. */
export type Access = "read" | "write";

/** The scope in the form in which the SDK hands it on to request handlers. */
export function authInfoOf(scope: RequestScope): AuthInfo {
  return { token: "", clientId: scope.caller.label, scopes: [], extra: { scope } };
}

/** The scope of the request that `context` is about. */
export function scopeOf({ http }: Pick<ServerContext, "http">): RequestScope {
  return http?.authInfo?.extra?.scope as RequestScope;
}
