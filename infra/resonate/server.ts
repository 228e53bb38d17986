/** The embedded Resonate server over the real one's HTTP: `POST /`, `GET /poll/{group}/{id}`, `/health`, `/ready`. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { streamSSE } from "hono/streaming";
import type { Logger } from "pino";
import { openDatabase } from "./database.ts";
import { BadRequest, PROTOCOL_VERSION, parseRequest } from "./requests.ts";
import { Resonate, type Response } from "./resonate.ts";
import { Store } from "./store.ts";

const HOST = "127.0.0.1";
/** The largest request, in bytes; the real server's limit. */
const MAX_BODY = 2 * 1024 * 1024;

/** How long, in milliseconds, answers may take to get out when the server is closed. */
const CLOSE_GRACE = 200;

export interface Options {
  /** 0 for any free port. */
  port: number;
  /** The directory of the state file; undefined to keep the state in memory only. */
  data: string | undefined;
  log: Logger;
}

export interface RunningServer {
  url: string;
  /** The state file, or `:memory:`. */
  file: string;
  /** Ends every connection and closes the state file. */
  close(): Promise<void>;
}

/** Starts a server on 127.0.0.1. Rejects with a `StartError`, or with Node's error if the port is taken. */
export async function startResonate({ port, data, log }: Options): Promise<RunningServer> {
  const { db, file } = openDatabase(data);
  const resonate = new Resonate(new Store(db), log);
  try {
    const server = await listen(createApp(resonate, log), port);
    return {
      url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
      file,
      async close() {
        const closed = new Promise((resolve) => server.close(resolve));
        resonate.close();
        setTimeout(() => server.closeAllConnections(), CLOSE_GRACE).unref();
        await closed;
      },
    };
  } catch (error) {
    resonate.close();
    throw error;
  }
}

function createApp(resonate: Resonate, log: Logger): Hono {
  const app = new Hono();

  app.get("/health", (c) => c.body(null, 200));
  app.get("/ready", (c) => c.body(null, 200));

  // A browser says which page a request comes from: no page may act on the jobs of the machine it is shown on.
  app.use(async (c, next) => {
    const fromPage = c.req.header("origin") !== undefined || (c.req.header("sec-fetch-site") ?? "none") !== "none";
    return fromPage ? c.text("Requests from web pages are refused", 403) : next();
  });

  // The rest of a body that is too large is not read, so nothing else can be sent on that connection.
  const onError = (c: Context) => c.text(`A request may have ${MAX_BODY} bytes`, 413, { connection: "close" });
  app.post("/", bodyLimit({ maxSize: MAX_BODY, onError }), async (c) => {
    const { corrId, response } = await answer(resonate, await c.req.arrayBuffer());
    const { kind, head, data } = response;
    return new globalThis.Response(
      JSON.stringify({ kind, head: { corrId, status: head.status, version: PROTOCOL_VERSION }, data }),
      { status: head.status, headers: { "content-type": "application/json" } },
    );
  });

  app.get("/poll/:group/:id", (c) => {
    const connection = resonate.connect(c.req.param("group"), c.req.param("id"));
    if (!connection) return c.text("Poll registration at capacity", 503);
    return streamSSE(c, async (stream) => {
      stream.onAbort(() => resonate.disconnect(connection));
      // Waiting for each write to be taken is what makes a slow reader visible as messages that wait.
      for (
        let message = await resonate.next(connection);
        message !== undefined;
        message = await resonate.next(connection)
      ) {
        await stream.writeSSE({ data: message });
      }
      resonate.disconnect(connection);
    });
  });

  app.onError((error, c) => {
    log.error({ err: error }, "unexpected error");
    return c.text("Internal error", 500);
  });
  return app;
}

async function answer(resonate: Resonate, body: ArrayBuffer): Promise<{ corrId: string; response: Response }> {
  try {
    const request = parseRequest(body);
    return { corrId: request.head.corrId, response: await resonate.submit(request) };
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error;
    const { status, kind, corrId, message } = error;
    return { corrId, response: { kind, head: { status }, data: message } };
  }
}

function listen(app: Hono, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname: HOST, port }, () => resolve(server)) as Server;
    // A client that keeps its connections open must not find one closed just as it sends on it.
    server.keepAliveTimeout = 0;
    server.once("error", reject);
  });
}
