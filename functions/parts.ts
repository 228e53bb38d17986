/** The parts of an edge, which `composition.ts` makes for its routes. */
import type { MiddlewareHandler } from "hono";
import type { EdgeFeature } from "../core/feature.ts";
import type { RemoteStore } from "../core/jobs/index.ts";
import type { ResonateClient } from "../core/resonate/index.ts";
import type { Middleware } from "../core/tools/index.ts";
import type { Auth } from "./auth/auth.ts";
import type { CallerService } from "./http/caller-request.ts";
import type { EdgeLog } from "./http/log.ts";

export interface Edge {
  log: EdgeLog;
  features: readonly EdgeFeature[];
  /** What a request passes before its caller is served. */
  admission: readonly Middleware[];
  /** The host names that requests may be addressed to; undefined for any. */
  hosts: readonly string[] | undefined;
  /** The origins whose pages may call the server, besides the request's own host; `*` for all. */
  origins: readonly string[];
  /** Answers pages of other servers' origins; undefined if none may call. */
  cors: MiddlewareHandler | undefined;
  /** Undefined in a deployment that authenticates nobody. */
  auth: Auth | undefined;
  client: ResonateClient;
  /** What does not work because a binding is missing; undefined if none is. */
  missing: string | undefined;
  /** The jobs of the deployment. */
  store: RemoteStore;
  /** Answers the requests of admitted callers at `/mcp`. */
  mcp: CallerService;
}
