/** The edge: a Cloudflare Worker that answers MCP requests and keeps no state. */
import {
  hostHeaderValidationResponse,
  type McpHttpHandler,
  originValidationResponse,
} from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { type Config, readConfig } from "./config.ts";
import { logError } from "./log.ts";
import { createMcp } from "./mcp.ts";
import { RemoteStore } from "./resonate.ts";

interface Edge {
  store: RemoteStore;
  mcp: McpHttpHandler;
  /** The host names requests may name and come from, or undefined for any. */
  hosts: string[] | undefined;
}

const app = new Hono<{ Bindings: Partial<Config>; Variables: { edge: Edge } }>();

app.get("/health", (c) => c.json({ status: "ok" }));

app.use(async (c, next) => {
  const edge = edgeOf(c.env);
  if (edge.hosts) {
    // A page on the web can resolve its own name to this machine; the Host and Origin it then sends are its own.
    const rejected =
      hostHeaderValidationResponse(c.req.raw, edge.hosts) ?? originValidationResponse(c.req.raw, edge.hosts);
    if (rejected) return rejected;
  }
  c.set("edge", edge);
  await next();
});

app.get("/ready", async (c) => {
  try {
    await c.var.edge.store.ready();
    return c.json({ status: "ready" });
  } catch (error) {
    return c.json({ status: "unavailable", reason: `Resonate: ${(error as Error).message}` }, 503);
  }
});

app.all("/mcp", (c) => c.var.edge.mcp.fetch(c.req.raw));

app.notFound((c) => c.json({ error: "Not found. The MCP endpoint is /mcp." }, 404));

app.onError((error, c) => {
  logError("request failed", error);
  return c.json({ error: error.message }, 500);
});

export default app;

/** What a deployment needs to answer, made once for its bindings: an isolate serves many requests with the same ones. */
function edgeOf(env: object): Edge {
  let edge = edges.get(env);
  if (!edge) {
    const config = readConfig(env);
    const store = new RemoteStore(config);
    edge = { store, mcp: createMcp(store), hosts: config.ALLOWED_HOSTS?.split(",").map((host) => host.trim()) };
    edges.set(env, edge);
  }
  return edge;
}

const edges = new WeakMap<object, Edge>();
