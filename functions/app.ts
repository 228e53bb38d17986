import { Hono, type MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { type Auth, createAuth } from "./auth/auth.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import type { AnyJob } from "./jobs/job.ts";
import { describeError, Log } from "./log.ts";
import { createMcp, type Mcp } from "./mcp/handler.ts";
import { createRateLimit, type RateLimit } from "./rate-limit.ts";
import { RequestLine } from "./request-line.ts";
import { RemoteStore } from "./resonate/store.ts";
import { TaskHandles } from "./tasks/handle.ts";
import type { Tool } from "./tools/tool.ts";

/** What a deployment offers. */
export interface Offer {
  jobs: readonly AnyJob[];
  tools: readonly Tool[];
}

interface Edge {
  store: RemoteStore;
  mcp: Mcp;
  auth: Auth;
  rateLimit: RateLimit | undefined;
  log: Log;
  /** The host names requests may name and come from, or undefined for any. */
  hosts: string[] | undefined;
  /** For pages on the origins that may call the server; undefined when there are none. */
  cors: MiddlewareHandler | undefined;
  isCorsOrigin(origin: string): boolean;
}

type App = Hono<{ Bindings: Partial<Config>; Variables: { edge: Edge; line: RequestLine } }>;

/**
 * The edge's routes: `/mcp`, `/health` (the edge itself), `/ready` (the Resonate server behind it) and, where there is
 * one, what clients need to know of the authorization server.
 */
export function createApp(offer: Offer): App {
  const app: App = new Hono();
  const edges = new WeakMap<object, Edge>();

  /** Made once for its bindings: an isolate serves many requests with the same ones. */
  const edgeOf = (env: object): Edge => {
    const edge = edges.get(env) ?? createEdge(offer, readConfig(env));
    edges.set(env, edge);
    return edge;
  };

  app.get("/health", (c) => {
    edgeOf(c.env);
    return c.json({ status: "ok" });
  });

  app.use(async (c, next) => {
    const edge = edgeOf(c.env);
    const requestId = c.req.header("cf-ray") ?? crypto.randomUUID();
    const line = new RequestLine(edge.log, requestId);
    c.set("edge", edge);
    c.set("line", line);
    await next();
    c.res.headers.set("x-request-id", requestId);
    line.answered(c.res.status);
  });

  app.use(async (c, next) => {
    const { hosts, cors, isCorsOrigin } = c.var.edge;
    if (hosts) {
      const { hostHeaderValidationResponse, originValidationResponse } = await import("./mcp/sdk.ts");
      // A page on the web can resolve its own name to this machine; the Host and Origin it then sends are its own.
      const rejected =
        hostHeaderValidationResponse(c.req.raw, hosts) ??
        (isCorsOrigin(c.req.header("origin") ?? "") ? undefined : originValidationResponse(c.req.raw, hosts));
      if (rejected) return rejected;
    }
    return cors ? cors(c, next) : next();
  });

  app.get("/ready", async (c) => {
    try {
      await c.var.edge.store.ready();
      return c.json({ status: "ready" });
    } catch (error) {
      return c.json({ status: "unavailable", reason: `Resonate: ${(error as Error).message}` }, 503);
    }
  });

  // The path is that of the resource it is about; clients that know no path ask without.
  for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
    app.use(path, cors());
    app.get(path, async (c) => {
      const metadata = await c.var.edge.auth.metadata(c.req.raw);
      return metadata ? c.json(metadata) : c.notFound();
    });
  }

  app.all("/mcp", async (c) => {
    const { auth, rateLimit, mcp } = c.var.edge;
    const caller = await auth.authenticate(c.req.raw);
    if (caller instanceof Response) return caller;
    c.var.line.caller = caller.label;
    const limited = rateLimit && (await rateLimit(caller.key || (c.req.header("cf-connecting-ip") ?? caller.label)));
    return limited ?? mcp(c.req.raw, { caller, line: c.var.line });
  });

  app.notFound((c) => c.json({ error: "Not found. The MCP endpoint is /mcp." }, 404));

  app.onError((error, c) => {
    if (error instanceof ConfigError) {
      new Log("error").error("misconfigured", { reason: error.message });
      return c.json({ error: error.message }, 500);
    }
    c.var.edge.log.error("request failed", { error: describeError(error) });
    return c.json({ error: "Something went wrong inside the server. Repeating the same request is safe." }, 500);
  });

  return app;
}

function createEdge({ jobs, tools }: Offer, config: Config): Edge {
  const log = new Log(config.LOG_LEVEL);
  const store = new RemoteStore(config, jobs, { quota: config.MAX_JOBS });
  const handles = config.TASK_KEY ? new TaskHandles(config.TASK_KEY, config.RESONATE_NAMESPACE) : undefined;
  const origins = config.CORS_ORIGINS ?? [];
  return {
    store,
    log,
    mcp: createMcp({ store, tools, handles, log }),
    auth: createAuth(config.auth, log),
    rateLimit: createRateLimit(config),
    hosts: config.ALLOWED_HOSTS,
    cors: origins.length > 0 ? cors({ ...CORS, origin: origins.includes("*") ? "*" : origins }) : undefined,
    isCorsOrigin: (origin) => origins.includes("*") || origins.includes(origin),
  };
}

/** What a client in a browser sends and reads besides what every page may. */
const CORS = {
  allowMethods: ["GET", "POST", "DELETE"],
  exposeHeaders: ["www-authenticate", "mcp-session-id", "mcp-protocol-version", "retry-after", "x-request-id"],
  maxAge: 86_400,
};
