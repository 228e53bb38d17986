import { createServer, type Server } from "node:http";
import { isIP } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { Worker } from "../worker.ts";
import { connected, registry } from "./metrics.ts";

/** For how long a worker may have no connection before it is not well any more, in milliseconds. */
const DISCONNECTED = 60_000;

/** The name of a machine within its network: one label, or one of the names that are for such networks alone. */
const NETWORK_NAME = /^[\w-]+$|\.(internal|local|localhost)$/i;

/**
 * Whether a request is addressed to this machine or container by what its network calls it. A page on the web that has
 * its own name resolved to it sends that name, which is none of these.
 */
function isAddressedHere(host: string | undefined, others: readonly string[]): boolean {
  const name = URL.parse(`http://${host ?? ""}`)?.hostname ?? "";
  return isIP(name.replace(/^\[|\]$/g, "")) !== 0 || NETWORK_NAME.test(name) || others.includes(name);
}

/**
 * Serves `GET /health`: 200 with how many jobs the worker runs, and `ok` or, while it cannot receive any from Resonate,
 * `disconnected`; 503 once it is stopping, has not
 * been connected yet, or not for a minute; and `GET /metrics` for Prometheus. Resolves to the address it listens on; a port that is taken is an Error that names it.
 * Requests addressed to another name than this machine's, or one of `names`, are refused.
 */
export async function serveHealth(
  worker: Worker,
  { host, port, names = [] }: { host: string; port: number; names?: readonly string[] },
) {
  const app = new Hono();
  app.use(async (c, next) => {
    const isRefused = !isAddressedHere(c.req.header("host"), names) || c.req.header("origin") !== undefined;
    return isRefused ? c.text("Requests must be addressed to this machine, and not come from a web page", 403) : next();
  });
  app.get("/health", (c) => {
    const { connected, running, stopping } = worker;
    // One that has just lost its connection may have jobs to end: it is not called dead. One that has none for long, or had
    // none from the beginning, is.
    const status = stopping ? "stopping" : connected ? "ok" : "disconnected";
    const isWell = connected || (worker.wasConnected && worker.disconnectedFor < DISCONNECTED);
    return c.json({ status, connected, running }, isWell && !stopping ? 200 : 503);
  });
  app.get("/metrics", async (c) => {
    connected.set(worker.connected ? 1 : 0);
    return c.body(await registry.metrics(), 200, { "Content-Type": registry.contentType });
  });
  const server = createServer(getRequestListener(app.fetch));
  const listening = await listen(server, host, port);
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${listening}/health`, server };
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(error.code === "EADDRINUSE" ? new Error(`HEALTH_PORT: port ${port} is already in use`) : error);
    });
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : port);
    });
  });
}
