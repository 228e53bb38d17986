/** HTTP at the edge: what middleware notes about a request, and the paths that features serve. */
import type { Context, MiddlewareHandler } from "hono";
import type { Caller } from "../author/caller.ts";
import type { Requester } from "../jobs/job-feature.ts";
import type { RequestBound, RequestLog } from "./request-scope.ts";

/** What middleware notes about a request. All but `requestLog` is known once its caller has been admitted. */
export interface RequestVariables {
  requestLog: RequestLog;
  caller: Caller;
  /** The scopes of the caller's token. */
  scopes: readonly string[];
  /** When the caller's token expires, in milliseconds since the epoch; infinity for a token that does not expire. */
  expires: number;
  /** The key by which the caller's limits count: its own, or else its address. */
  limitKey(): string;
  /** What the request says about itself to the jobs that it starts. */
  requester?: Partial<Requester>;
  bounds?: readonly RequestBound[];
}

export interface RouteTypes {
  Variables: RequestVariables;
}

/** A request that passes through the edge. */
export type Visit = Context<RouteTypes>;
export type Middleware = MiddlewareHandler<RouteTypes>;

/** Answers requests to the paths of a route. */
export type RouteHandler = (visit: Visit) => Response | Promise<Response>;

/** Paths that a feature serves. */
export interface Route {
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  /** Whether pages of any origin may read it: a public document about the server. */
  readonly isPublicDocument?: boolean;
  /** What a request passes before it reaches the handler. */
  readonly middleware?: readonly Middleware[];
  /** Loads the handler, which is needed only when a path is asked for. */
  load(): Promise<RouteHandler>;
}
