import { hostHeaderValidationResponse, originValidationResponse } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { type Config, readConfig } from "./config.ts";
import type { AnyJob } from "./jobs/job.ts";
import { logError } from "./log.ts";
import { createMcp, type Mcp } from "./mcp/handler.ts";
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
  /** The host names requests may name and come from, or undefined for any. */
  hosts: string[] | undefined;
}

type App = Hono<{ Bindings: Partial<Config>; Variables: { edge: Edge } }>;

/** The edge's routes: `/mcp`, `/health` (the edge itself) and `/ready` (the Resonate server behind it). */
export function createApp(offer: Offer): App {
  const app: App = new Hono();
  const edges = new WeakMap<object, Edge>();

  /** Made once for its bindings: an isolate serves many requests with the same ones. */
  const edgeOf = (env: object): Edge => {
    let edge = edges.get(env);
    if (!edge) {
      const config = readConfig(env);
      const store = new RemoteStore(config, offer.jobs);
      const hosts = config.ALLOWED_HOSTS?.split(",").map((host) => host.trim());
      const handles = config.TASK_KEY ? new TaskHandles(config.TASK_KEY, config.RESONATE_NAMESPACE) : undefined;
      edge = { store, mcp: createMcp({ store, tools: offer.tools, handles }), hosts };
      edges.set(env, edge);
    }
    return edge;
  };

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
    return next();
  });

  app.get("/ready", async (c) => {
    try {
      await c.var.edge.store.ready();
      return c.json({ status: "ready" });
    } catch (error) {
      return c.json({ status: "unavailable", reason: `Resonate: ${(error as Error).message}` }, 503);
    }
  });

  app.all("/mcp", (c) => c.var.edge.mcp(c.req.raw));

  app.notFound((c) => c.json({ error: "Not found. The MCP endpoint is /mcp." }, 404));

  app.onError((error, c) => {
    logError("request failed", error);
    return c.json({ error: error.message }, 500);
  });

  return app;
}
