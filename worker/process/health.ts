import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { Worker } from "./worker.ts";

/** How long a worker without a connection counts as healthy. */
const MAX_DISCONNECTED_MS = 60_000;

/** Matches a name within a private network: a single label, or a top-level domain that is reserved for such networks. */
const NETWORK_NAME = /^[\w-]+$|\.(internal|local|localhost)$/i;

/**
 * Whether a request names this machine by an address or a network-internal name. A web page that makes its own public name
 * resolve to this machine (DNS rebinding) sends that public name instead.
 */
function isAddressedHere(host: string | undefined, otherNames: readonly string[]): boolean {
  const name = URL.parse(`http://${host ?? ""}`)?.hostname ?? "";
  return isIP(name.replace(/^\[|\]$/g, "")) !== 0 || NETWORK_NAME.test(name) || otherNames.includes(name);
}

/**
 * Serves `GET /health` (200, or 503 while the worker is stopping, was never connected, or has been disconnected for a minute) and
 * the routes of features. Refuses requests to host names other than this machine's and `names`. Resolves with the URL.
 *
 * @throws {Error} naming a port that is taken
 */
export async function serveHealth(
  worker: Worker,
  { host, port, names }: { host: string; port: number; names: readonly string[] },
): Promise<string> {
  const app = new Hono();
  app.use(async (c, next) => {
    const isRefused = !isAddressedHere(c.req.header("host"), names) || c.req.header("origin") !== undefined;
    return isRefused ? c.text("Requests must be addressed to this machine, and not come from a web page", 403) : next();
  });
  app.get("/health", (c) => {
    const { isConnected, running, isStopping } = worker;
    // A worker that has lost its connection may still have jobs to finish, so it stays healthy for a while.
    const status = isStopping ? "stopping" : isConnected ? "ok" : "disconnected";
    const isHealthy = worker.disconnectedMs < MAX_DISCONNECTED_MS && !isStopping;
    return c.json({ status, connected: isConnected, running }, isHealthy ? 200 : 503);
  });
  for (const feature of worker.features) feature.routes?.(app);
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })).listen(port, host);
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EADDRINUSE" ? new Error(`HEALTH_PORT: port ${port} is already in use`) : error;
  });
  const listening = (server.address() as AddressInfo).port;
  return `http://${host.includes(":") ? `[${host}]` : host}:${listening}/health`;
}
