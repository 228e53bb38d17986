/** The parts of an edge, which `composition.ts` makes and passes to the routes. Code that is loaded later knows only these. */
import type { Context, MiddlewareHandler } from "hono";
import type { Hono } from "hono/tiny";
import type { Caller } from "../core/author/caller.ts";
import type { RemoteStore } from "../core/jobs/remote-store.ts";
import type { ResonateClient } from "../core/resonate/connection/client.ts";
import type { RequestScope } from "../core/tools/request-scope.ts";
import type { LoadFiles } from "../features/files/files.ts";
import type { Settings } from "../features/operators/calls.ts";
import type { Pages } from "../features/pages/sessions.ts";
import type { Auth } from "./auth/auth.ts";
import type { Config } from "./config.ts";
import type { EdgeLog } from "./http/log.ts";
import type { RateLimit, RefusedTries } from "./http/rate-limit.ts";
import type { RequestLog } from "./http/request-log.ts";
import type { SharedValue } from "./http/shared-value.ts";
import type { StreamSlots } from "./http/stream-slots.ts";
import type { Callers } from "./objects/callers.ts";

/** The routes of an edge, and a request that passes through them. */
export type App = Hono<RouteTypes>;
export type Visit = Context<RouteTypes>;

interface RouteTypes {
  Bindings: Partial<Config>;
  Variables: { edge: Edge; line: RequestLog };
}

/** An authenticated request of a caller within its limits. */
export interface Identified {
  /** With the token of its browser session, where it has one. */
  request: Request;
  caller: Caller;
  scopes: readonly string[];
  /** When its token expires, in milliseconds since the epoch; infinity for a token that does not expire. */
  expires: number;
  /** The key of its limits. */
  key: string;
  /** The jobs as the caller sees them, for this request alone. */
  store: RemoteStore;
}

export interface Edge {
  config: Config;
  /** The caller of a request, which is charged to the caller's limit; or the response that refuses it. */
  identify: (request: Request, line: RequestLog) => Promise<Identified | Response>;
  store: RemoteStore;
  /** The client of the Resonate server, for requests without a caller. */
  client: ResonateClient;
  /** Answers an MCP request of an admitted caller. */
  mcp: (request: Request, scope: RequestScope) => Promise<Response>;
  auth: Auth;
  /** A public document about the server, at its configured address or else the one that the request reached. */
  discovery: (document: "card" | "catalog", request: Request) => Promise<object>;
  rateLimit: RateLimit | undefined;
  slots: StreamSlots;
  /** The operators' settings, possibly some seconds old, with the callers whom the configuration blocks. */
  settings: () => Promise<Settings>;
  refused: RefusedTries;
  /** Why the Resonate server is not ready; undefined when it is. */
  ready: SharedValue<string | undefined>;
  /** The callers' objects; undefined where none are bound. */
  callers: Callers | undefined;
  /** Makes the schedules of the definitions, once; undefined where no definition has one. */
  deploy: (() => Promise<unknown>) | undefined;
  /** What does not work because a binding is missing; undefined where none is. */
  missing: string | undefined;
  log: EdgeLog;
  pages: Pages;
  files: LoadFiles;
  /** The origins whose pages may call the server, besides the request's own host; `*` for all. */
  origins: readonly string[];
  /** Answers pages of other servers' origins; undefined when none may call. */
  cors: MiddlewareHandler | undefined;
}
