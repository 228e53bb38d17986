import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { Hono } from "hono/tiny";
import type { Job } from "../core/jobs/job.ts";
import { createFanOut } from "../core/resonate/fan-out.ts";
import { placeOf, RemoteStore } from "../core/resonate/remote-store.ts";
import type { Tool } from "../core/tools/tool.ts";
import { type Auth, createAuth } from "./auth/auth.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { DISCOVERY, Discovery, KEPT } from "./discovery.ts";
import { addressOf } from "./http/address.ts";
import { checkHost, checkOrigin } from "./http/guard.ts";
import { EdgeLog } from "./http/log.ts";
import { Counts, createRateLimit, type RateLimit, tooManyRequests } from "./http/rate-limit.ts";
import { RequestLine } from "./http/request-line.ts";
import { SharedValue } from "./http/shared-value.ts";
import { boundedStream, isStream, LONGEST_STREAM, type StreamPlace, Streams } from "./http/streams.ts";
import { createFeed } from "./listener/feed.ts";
import { type Admit, createMcp, type Mcp } from "./mcp/handler.ts";
import type { Identity } from "./mcp/identity.ts";
import { TaskHandles } from "./tasks/handle.ts";

/** What a deployment offers, and what it says of itself. */
export interface Deployment {
  jobs: readonly Job[];
  tools: readonly Tool[];
  identity: Identity;
}

interface Edge {
  store: RemoteStore;
  mcp: Mcp;
  auth: Auth;
  discovery: Discovery;
  rateLimit: RateLimit | undefined;
  streams: Streams;
  /** Tokens that were refused, by the address they came from. */
  refused: Counts;
  /** Whether the Resonate server is ready: undefined, or why it is not. */
  ready: SharedValue<string | undefined>;
  log: EdgeLog;
  /** The host names requests may name and come from, or undefined for any. */
  hosts: string[] | undefined;
  /** The origins whose pages may call the server, besides those of the host that a request is addressed to; `*` for all. */
  origins: readonly string[];
  /** For pages on those that are another server's; undefined when there are none. */
  cors: MiddlewareHandler | undefined;
}

type App = Hono<{ Bindings: Partial<Config>; Variables: { edge: Edge; line: RequestLine } }>;

/** A request id of Cloudflare's; what else a request names itself is not taken over. */
const RAY = /^[0-9a-f]{16}(-[A-Z]{3})?$/;

/** How many tokens of one address may be refused in a minute before no more of its tokens are looked at. */
const MAX_REFUSED = 100;

/** How long what was learned of the Resonate server's readiness is told, in milliseconds. */
const READY = { fresh: 2_000, failed: 1_000, turn: 3_000 };

/** Who has to find out how to get a token may be a page of any origin. */
const METADATA = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];

/**
 * The edge's routes: `/mcp`, `/health` (the edge itself), `/ready` (the Resonate server behind it), what says to
 * everybody what the server is and, where there is one, what clients need to know of the authorization server.
 */
export function createApp(deployment: Deployment): App {
  const app: App = new Hono();
  const edges = new WeakMap<object, Edge>();

  /** Made once for its bindings: an isolate serves many requests with the same ones. */
  const edgeOf = (env: object): Edge => {
    const edge = edges.get(env) ?? createParts(deployment, readConfig(env));
    edges.set(env, edge);
    return edge;
  };

  app.use(async (c, next) => {
    const edge = edgeOf(c.env);
    c.set("edge", edge);
    if (c.req.path === "/health") return next();
    const ray = c.req.header("cf-ray");
    const requestId = ray !== undefined && RAY.test(ray) ? ray : crypto.randomUUID();
    const line = new RequestLine(edge.log, requestId);
    c.set("line", line);
    await next();
    c.res.headers.set("x-request-id", requestId);
    line.answered(c.res.status);
  });

  app.use(async (c, next) => {
    const rejected = await checkHost(c.req.raw, c.var.edge.hosts);
    if (rejected) return rejected;
    // The router takes a path with a slash at its end for the one without.
    return c.req.path.endsWith("/") ? c.notFound() : next();
  });

  app.get("/health", (c) => c.json({ status: "ok" }));

  // The path is that of the resource it is about; clients that know no path ask without.
  for (const path of METADATA) {
    app.use(path, cors());
    app.get(path, async (c) => {
      const metadata = await c.var.edge.auth.metadata(c.req.raw);
      return metadata ? c.json(metadata) : c.notFound();
    });
  }

  for (const { path, document, type } of DISCOVERY) {
    app.use(path, cors());
    app.get(path, (c) => {
      const said = JSON.stringify(c.var.edge.discovery[document](c.req.raw));
      return c.body(said, 200, { "content-type": type, "cache-control": KEPT });
    });
  }

  app.use(async (c, next) => {
    const { hosts, origins, cors } = c.var.edge;
    const rejected = await checkOrigin(c.req.raw, { hosts, origins });
    if (rejected) return rejected;
    return cors ? cors(c, next) : next();
  });

  app.get("/ready", async (c) => {
    const { store, ready } = c.var.edge;
    // Anybody may ask, and the Resonate server is asked once in a while.
    const { value: reason } = await ready.get(() =>
      store.ready().then(
        () => undefined,
        (error: Error) => `Resonate: ${error.message}`,
      ),
    );
    return reason === undefined ? c.json({ status: "ready" }) : c.json({ status: "unavailable", reason }, 503);
  });

  app.all("/mcp", async (c) => {
    const { auth, rateLimit, refused, store, streams, mcp } = c.var.edge;
    const { line } = c.var;
    const request = c.req.raw;
    const address = addressOf(request);
    const guesses = address !== undefined && auth.presentsToken(request);
    if (guesses && refused.of(address) >= MAX_REFUSED) {
      return tooManyRequests(`${MAX_REFUSED} refused tokens`, 1, refused.secondsLeft);
    }
    const authenticated = await auth.authenticate(request);
    if (authenticated instanceof Response) {
      if (guesses && authenticated.status === 401) refused.add(address, 1);
      return authenticated;
    }
    const { caller, scopes, expires = Number.POSITIVE_INFINITY } = authenticated;
    line.caller = caller.label;
    const key = caller.key || (address ?? caller.label);
    // For the request itself, before its body is read; what it asks for is counted when that is known.
    const limited = await rateLimit?.(key, { weight: 1, of: 1 });
    if (limited) return limited;
    let place: StreamPlace | undefined;
    const admit: Admit = async (weight, { access, streams: isStreamed }) => {
      const refusal =
        (weight > 1 ? await rateLimit?.(key, { weight: weight - 1, of: weight }) : undefined) ??
        (await auth.authorize(request, scopes, access));
      if (refusal || !isStreamed) return refusal;
      place = streams.take(key);
      return place ? undefined : streams.refusal();
    };
    const own = store.as(caller, line.requestId, createFanOut());
    const until = Math.min(Date.now() + LONGEST_STREAM, expires);
    const scope = { caller, store: own, line, until, links: knowsLinks(request.headers) };
    const response = await mcp(request, scope, admit).catch((error) => {
      place?.release();
      throw error;
    });
    if (isStream(response)) return boundedStream(response, place ?? streams.enter(key), until);
    place?.release();
    return response;
  });

  app.notFound((c) => c.json({ error: "Not found. The MCP endpoint is /mcp." }, 404));

  app.onError((error, c) => {
    if (error instanceof ConfigError) {
      new EdgeLog("error").error("misconfigured", { reason: error.message });
      return c.json({ error: error.message }, 500);
    }
    // Undefined where making the edge has failed.
    const log = (c.var as { edge?: Edge }).edge?.log ?? new EdgeLog("error");
    log.error("request failed", { error: log.describe(error) });
    return c.json({ error: "Something went wrong inside the server. Repeating the same request is safe." }, 500);
  });

  return app;
}

function createParts({ jobs, tools, identity }: Deployment, config: Config): Edge {
  const log = new EdgeLog(config.LOG_LEVEL);
  const feed = config.LISTENER && createFeed(config.LISTENER);
  const store = new RemoteStore({ ...placeOf(config), feed }, jobs, { quota: config.MAX_JOBS });
  const handles = config.TASK_KEY ? new TaskHandles(config.TASK_KEY, config.RESONATE_NAMESPACE) : undefined;
  const origins = config.CORS_ORIGINS ?? [];
  return {
    store,
    log,
    mcp: createMcp({
      tools,
      identity,
      handles,
      log,
      policy: { patience: config.WAIT_SECONDS * 1_000, mayConfirm: config.CONFIRM_ARGUMENTS === "on" },
    }),
    auth: createAuth(config.auth, config, log),
    discovery: new Discovery(identity, config),
    rateLimit: createRateLimit(config),
    streams: new Streams(config.MAX_STREAMS),
    refused: new Counts(),
    ready: new SharedValue(READY),
    hosts: config.ALLOWED_HOSTS,
    origins: [...origins, ...(config.PUBLIC_URL === undefined ? [] : [new URL(config.PUBLIC_URL).origin])],
    cors: origins.length > 0 ? cors({ ...CORS, origin: origins.includes("*") ? "*" : [...origins] }) : undefined,
  };
}

/** Whether a client's revision has links to resources in results, which came with 2025-06-18; revisions are dates. */
function knowsLinks(headers: Headers): boolean {
  const revision = headers.get("mcp-protocol-version") ?? "";
  return /^\d{4}-\d{2}-\d{2}$/.test(revision) && revision >= "2025-06-18";
}

/** What a client in a browser sends and reads besides what every page may. */
const CORS = {
  allowMethods: ["GET", "POST", "DELETE"],
  exposeHeaders: ["www-authenticate", "mcp-session-id", "mcp-protocol-version", "retry-after", "x-request-id"],
  maxAge: 86_400,
};
