import { cors } from "hono/cors";
import { Hono } from "hono/tiny";
import { drainUnread, undecryptableIn } from "../core/resonate/index.ts";
import type { Middleware, Route, RouteTypes, Visit } from "../core/tools/index.ts";
import { compose, type Deployment } from "./composition.ts";
import { ConfigError, readConfig } from "./config.ts";
import { serveCaller } from "./http/caller-request.ts";
import { EdgeLog } from "./http/log.ts";
import { checkHost, checkOrigin } from "./http/origins.ts";
import { outageIn } from "./http/outage.ts";
import { readiness } from "./http/readiness.ts";
import { logRequests } from "./http/request-log.ts";
import { ACCEPT_PATTERN } from "./mcp/message.ts";
import type { Edge } from "./parts.ts";

/** The path names the resource that the metadata is about; clients that know no path ask without it. */
const METADATA_PATHS = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];

type Routes = Hono<RouteTypes>;

/** Answers requests with the bindings of a Worker. `context` may be left out if nothing outlasts the response. */
export interface App {
  fetch(request: Request, env: object, context?: object): Response | Promise<Response>;
}

/** The edge of a deployment, composed from the bindings when the first request comes. */
export function createApp(deployment: Deployment): App {
  const edges = new WeakMap<object, Routes>();
  const edgeOf = (env: object) => {
    const routes = routesOf(compose(deployment, readConfig(env), env));
    edges.set(env, routes);
    return routes;
  };
  return {
    async fetch(request, env, context) {
      try {
        return await (edges.get(env) ?? edgeOf(env)).fetch(request, env, context as never);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        new EdgeLog("error").error("misconfigured", { reason: error.message });
        await drainUnread(request);
        return Response.json({ error: error.message }, { status: 500 });
      }
    },
  };
}

/**
 * The routes of an edge, in the order in which a request meets them: `/health` (the edge itself), the public documents about
 * the server, `/ready` (the Resonate server behind it), those of the features, and `/mcp`.
 */
function routesOf({ log, features, admission, hosts, origins, auth, store, ...edge }: Edge): Routes {
  const app: Routes = new Hono();
  const routes = features.flatMap((feature) => feature.routes ?? []);

  app.use(drainRefused);
  app.use(logRequests(log));
  for (const { middleware } of features) if (middleware) app.use(middleware);
  if (hosts) app.use(checkHost(hosts));
  app.use(refuseTrailingSlash);
  app.get("/health", (c) => c.json({ status: "ok" }));

  // Pages of any origin may learn how to get a token, and what the server is.
  for (const path of METADATA_PATHS) {
    app.use(path, cors());
    app.get(path, async (c) => (auth?.metadata ? c.json(await auth.metadata(c.req.raw)) : c.notFound()));
  }
  for (const route of routes.filter(({ isPublicDocument }) => isPublicDocument)) {
    for (const path of route.paths) app.use(path, cors());
    mount(app, route);
  }

  app.use(checkOrigin(origins, hosts));
  if (edge.cors) app.use(edge.cors);
  app.on("GET", ["/ready", "/resonate/ready"], readiness(edge.client, edge.missing));
  for (const route of routes.filter(({ isPublicDocument }) => !isPublicDocument)) mount(app, route);
  app.use("/mcp", readHeaders, ...admission);
  app.all("/mcp", (c) => serveCaller(c, store, edge.mcp));

  app.notFound((c) => c.json({ error: "Not found. The MCP endpoint is /mcp." }, 404));
  app.onError((error, c) => answerError(error, c, log));
  return app;
}

/** A client whose request is refused before its body is read, for its token, origin, path or limits, reads the answer after it has sent all. */
const drainRefused: Middleware = async function drainRefusedBody(c, next) {
  await next();
  const { raw } = c.req;
  if (!raw.bodyUsed) await drainUnread(raw);
};

/** The router would match a path with a trailing slash, with which some clients write the address of the server alone. */
const refuseTrailingSlash: Middleware = function refuseTrailingSlash(c, next) {
  const { path } = c.req;
  return path !== "/" && path !== "/mcp/" && path.endsWith("/") ? Promise.resolve(c.notFound()) : next();
};

/** Reads headers that other clients and proxies write otherwise, and answers in the type that they read. One that repeats a header repeats the revision. */
const readHeaders: Middleware = async function readHeadersOf(c, next) {
  const { raw } = c.req;
  const isRepeated = raw.headers.get("mcp-protocol-version")?.includes(",");
  if (!isRepeated && ACCEPT_PATTERN.test(raw.headers.get("accept") ?? "")) return next();
  const { inAcceptedType, usualHeaders } = await import("./mcp/usual-headers.ts");
  c.req.raw = new Request(raw, { headers: usualHeaders(raw.headers), signal: raw.signal });
  await next();
  c.res = await inAcceptedType(c.res, raw.headers);
  return undefined;
};

function mount(app: Routes, { methods, paths, middleware = [], load }: Route): void {
  app.on([...methods], [...paths], ...middleware, async (c: Visit) => (await load())(c));
}

function answerError(error: Error, c: Visit, log: EdgeLog): Response {
  const outage = outageIn(error, log, c.req.raw.signal);
  // A page asks again after a 5xx, which is of no use for a job that cannot be decrypted.
  if (outage !== undefined) return c.json({ error: outage }, undecryptableIn(error) ? 424 : 503);
  log.error("request failed", { error: log.describe(error) });
  return c.json({ error: "Something went wrong inside the server. Repeating the same request is safe." }, 500);
}
