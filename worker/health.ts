import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { connected, registry } from "./metrics.ts";
import type { Worker } from "./worker.ts";

/**
 * Serves `GET /health`: 200 with whether the worker is connected to Resonate and how many jobs it runs, 503 once it is
 * stopping; and `GET /metrics` for Prometheus. Resolves to the address it listens on; a port that is taken is an Error that names it.
 */
export async function serveHealth(worker: Worker, { host, port }: { host: string; port: number }) {
  const app = new Hono();
  app.get("/health", (c) => {
    const { connected, running, stopping } = worker;
    return c.json({ status: stopping ? "stopping" : "ok", connected, running }, stopping ? 503 : 200);
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
