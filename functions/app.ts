import { cors } from "hono/cors";
import { Hono } from "hono/tiny";
import { unreadIn } from "../core/resonate/connection/failures.ts";
import { CACHE_CONTROL, DISCOVERY } from "../features/discovery/discovery.ts";
import { createParts, type Deployment } from "./composition.ts";
import { ConfigError, readConfig } from "./config.ts";
import { answerMcp } from "./http/admission.ts";
import { EdgeLog } from "./http/log.ts";
import { checkHost, checkOrigin } from "./http/origins.ts";
import { outageIn } from "./http/outage.ts";
import { RequestLog } from "./http/request-log.ts";
import type { App, Edge } from "./parts.ts";

/** A request id of Cloudflare. Ids that clients choose are not adopted. */
const RAY = /^[0-9a-f]{16}(-[A-Z]{3})?$/;

/** The path names the resource that the metadata is about; clients that know no path ask without it. */
const METADATA = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];

/** The routes for browsers. */
const PAGES: [methods: string[], paths: string[]][] = [
  [["GET"], ["/", "/jobs", "/jobs/*", "/assets/:file", "/favicon.ico", "/view/:sealed"]],
  [["GET"], ["/pages/about", "/pages/job", "/pages/link/:link"]],
  [["GET", "DELETE"], ["/pages/told"]],
  [["POST", "DELETE"], ["/pages/session"]],
];

/**
 * The routes of the edge: `/mcp`, the pages, `/health` (the edge itself), `/ready` (the Resonate server behind it), the
 * public documents about the server and, with OAuth, what clients need to know about the authorization server.
 */
export function createApp(deployment: Deployment): App {
  const app: App = new Hono();
  const edges = new WeakMap<object, Edge>();

  app.use(async (c, next) => {
    const edge = edges.get(c.env) ?? createParts(deployment, readConfig(c.env), c.env);
    edges.set(c.env, edge);
    c.set("edge", edge);
    if (edge.deploy) c.executionCtx.waitUntil(edge.deploy());
    if (c.req.path === "/health") return next();
    const ray = c.req.header("cf-ray");
    const requestId = ray !== undefined && RAY.test(ray) ? ray : crypto.randomUUID();
    const isTraced = c.env.OTEL_EXPORTER_OTLP_ENDPOINT && c.req.path === "/mcp";
    const line = new RequestLog(
      edge.log,
      requestId,
      isTraced
        ? (span) =>
            c.executionCtx.waitUntil(
              import("../features/trace/export-span.ts").then(({ exportSpan }) => exportSpan(span, c.env)),
            )
        : undefined,
    );
    line.trace(c.req.header("traceparent"));
    c.set("line", line);
    await next();
    c.res.headers.set("x-request-id", requestId);
    line.answered(c.res.status);
  });

  app.use(async (c, next) => {
    const rejected = await checkHost(c.req.raw, c.var.edge.config.ALLOWED_HOSTS);
    if (rejected) return rejected;
    // The router would match a path with a trailing slash.
    return c.req.path !== "/" && c.req.path.endsWith("/") ? c.notFound() : next();
  });

  app.get("/health", (c) => c.json({ status: "ok" }));

  // Pages of any origin may learn how to get a token, and what the server is.
  for (const path of [...METADATA, ...DISCOVERY.map(({ path }) => path)]) app.use(path, cors());
  for (const path of METADATA) {
    app.get(path, async (c) => {
      const metadata = await c.var.edge.auth.metadata(c.req.raw);
      return metadata ? c.json(metadata) : c.notFound();
    });
  }
  for (const { path, document, type } of DISCOVERY) {
    app.get(path, async (c) => {
      const text = JSON.stringify(await c.var.edge.discovery(document, c.req.raw));
      return c.body(text, 200, { "content-type": type, "cache-control": CACHE_CONTROL });
    });
  }

  app.use(async (c, next) => {
    const { config, origins, cors } = c.var.edge;
    const rejected = await checkOrigin(c.req.raw, origins, config.ALLOWED_HOSTS);
    if (rejected) return rejected;
    return cors ? cors(c, next) : next();
  });

  app.on("GET", ["/ready", "/resonate/ready"], async (c) => {
    const { client, ready, missing } = c.var.edge;
    // Anybody may ask, so the Resonate server is asked only once in a while.
    const { value: reason } = await ready.get(() =>
      client.ready().then(
        () => undefined,
        (error: Error) => `Resonate: ${error.message}`,
      ),
    );
    return reason === undefined ? c.json({ status: "ready", missing }) : c.json({ status: "unavailable", reason }, 503);
  });

  for (const [methods, paths] of PAGES) {
    app.on(methods, paths, async (c) => {
      const { answerPage } = await import("../features/pages/routes.ts");
      return answerPage(c);
    });
  }

  // The routes for workers, operators, outside systems and readers of files. They are public, so refusals are counted.
  const doors = ["/reports", "/callbacks/:sealed", "/files/:sealed", "/operate/*", "/resonate", "/resonate/*"];
  app.on(["GET", "POST", "DELETE"], doors, async (c) => {
    const { edge } = c.var;
    const tooMany = edge.refused.tooMany(c.req.raw);
    if (tooMany) return tooMany;
    const { doorOf } = await import("./public-routes.ts");
    const response = await doorOf(c.req.path)(c.req.raw, edge);
    if (response.status === 401) edge.refused.add(c.req.raw);
    return response;
  });

  app.all("/mcp", async (c) => {
    const { edge, line } = c.var;
    const identified = await edge.identify(c.req.raw, line);
    if (identified instanceof Response) return identified;
    return answerMcp(identified, edge, line, (work) => c.executionCtx.waitUntil(work));
  });

  app.notFound((c) => c.json({ error: "Not found. The MCP endpoint is /mcp." }, 404));

  app.onError((error, c) => {
    if (error instanceof ConfigError) {
      new EdgeLog("error").error("misconfigured", { reason: error.message });
      return c.json({ error: error.message }, 500);
    }
    // Undefined where the edge could not be made.
    const log = (c.var as { edge?: Edge }).edge?.log ?? new EdgeLog("error");
    const outage = outageIn(error, log, c.req.raw.signal);
    // A page asks again after a 5xx, which is of no use for a job that cannot be decrypted.
    if (outage !== undefined) return c.json({ error: outage }, unreadIn(error) ? 424 : 503);
    log.error("request failed", { error: log.describe(error) });
    return c.json({ error: "Something went wrong inside the server. Repeating the same request is safe." }, 500);
  });

  return app;
}
