import { cors } from "hono/cors";
import { Hono } from "hono/tiny";
import { fetchFrom } from "../../core/store/object-address.ts";
import { addressOf } from "../http/address.ts";
import { isBounded } from "../http/event-stream.ts";
import { checkHost, checkOrigin } from "../http/guard.ts";
import { EdgeLog } from "../http/log.ts";
import { RequestLine } from "../http/request-line.ts";
import { boundedStream, isStream, LONGEST_STREAM, type StreamPlace } from "../http/streams.ts";
import type { Admit } from "../mcp/handler.ts";
import { routePages } from "../pages/routes.ts";
import { identify, tooManyRefused } from "./admission.ts";
import { createParts, type Deployment, type Edge } from "./composition.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { DISCOVERY, KEPT } from "./discovery.ts";

export type App = Hono<{ Bindings: Partial<Config>; Variables: { edge: Edge; line: RequestLine } }>;

/** A request id of Cloudflare's; what else a request names itself is not taken over. */
const RAY = /^[0-9a-f]{16}(-[A-Z]{3})?$/;

/** Who has to find out how to get a token may be a page of any origin. */
const METADATA = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];

/**
 * The edge's routes: `/mcp`, the pages, `/health` (the edge itself), `/ready` (the Resonate server behind it), what says to
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
    return c.req.path !== "/" && c.req.path.endsWith("/") ? c.notFound() : next();
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

  app.on("GET", ["/ready", "/resonate/ready"], async (c) => {
    const { store, ready, missing } = c.var.edge;
    // Anybody may ask, and the Resonate server is asked once in a while.
    const { value: reason } = await ready.get(() =>
      store.ready().then(
        () => undefined,
        (error: Error) => `Resonate: ${error.message}`,
      ),
    );
    return reason === undefined ? c.json({ status: "ready", missing }) : c.json({ status: "unavailable", reason }, 503);
  });

  routePages(app);

  // The Resonate object for workers elsewhere: who is let in, it says itself. It is everybody's, and so nobody guesses at it
  // without end.
  app.on(["GET", "POST"], ["/resonate", "/resonate/*"], async (c) => {
    const { RESONATE, RESONATE_PUBLIC } = readConfig(c.env);
    if (!RESONATE || RESONATE_PUBLIC !== "1") return c.notFound();
    const { edge } = c.var;
    const address = addressOf(c.req.raw);
    const guessed = address === undefined ? undefined : tooManyRefused(edge, address);
    if (guessed) return guessed;
    // The path with its dots resolved: as it was written, `/resonate/../key` would lead past what is open to them.
    const { pathname, search } = new URL(c.req.url);
    if (!pathname.startsWith("/resonate")) return c.notFound();
    const url = `http://resonate/public${pathname.slice("/resonate".length)}${search}`;
    const response = await fetchFrom(RESONATE)(new Request(url, c.req.raw));
    if (address !== undefined && response.status === 401) edge.refused.add(address, 1);
    return new Response(response.body, response); // its headers can be added to
  });

  app.all("/mcp", async (c) => {
    const { edge, line } = c.var;
    const { auth, rateLimit, streams, mcp } = edge;
    const identified = await identify(c.req.raw, edge, line);
    if (identified instanceof Response) return identified;
    const { request, caller, scopes, expires, key, store } = identified;
    let place: StreamPlace | undefined;
    const admit: Admit = async (weight, { access, streams: isStreamed }) => {
      const refusal =
        (weight > 1 ? await rateLimit?.(key, { weight: weight - 1, of: weight }) : undefined) ??
        (await auth.authorize(request, scopes, access));
      if (refusal || !isStreamed) return refusal;
      place = streams.take(key);
      return place ? undefined : streams.refusal();
    };
    const until = Math.min(Date.now() + LONGEST_STREAM, expires);
    const placed = () => {
      place ??= streams.enter(key);
      return place;
    };
    const scope = { caller, store, line, until, place: placed, links: knowsLinks(request.headers) };
    const response = await mcp(request, scope, admit).catch((error) => {
      place?.release();
      throw error;
    });
    if (isStream(response)) return isBounded(response) ? response : boundedStream(response, placed(), until);
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

/** Whether a client's revision has links to resources in results, which came with 2025-06-18; revisions are dates. */
function knowsLinks(headers: Headers): boolean {
  const revision = headers.get("mcp-protocol-version") ?? "";
  return /^\d{4}-\d{2}-\d{2}$/.test(revision) && revision >= "2025-06-18";
}
