/** Serves the real server's HTTP interface (`POST /`, `GET /poll/{group}/{id}`, `/health`, `/ready`), and `/usage`. */
import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { statfsSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { Store } from "../engine/store.ts";
import type { Resonate } from "../resonate.ts";
import { MAX_BODY, respondTo, TOO_LARGE } from "../wire/answer.ts";
import { decodePart } from "../wire/poll-address.ts";
import { KEEP_ALIVE } from "../wire/poll-connections.ts";
import { openDatabase } from "./database.ts";
import { NodeSql } from "./node-sql.ts";
import { TimedResonate } from "./timed-resonate.ts";

const HOST = "127.0.0.1";
const MEMORY = ":memory:";

/** How long open answers may still take when the server is closed, in milliseconds. */
const CLOSE_GRACE = 200;

export interface ServerOptions {
  /** 0 for any free port. */
  port: number;
  /** The directory of the state file; undefined keeps the state in memory only. */
  data: string | undefined;
  /**
   * The token that clients send, as to the real server: in `head.auth` of a request, or as the bearer token of a connection.
   * Default `RESONATE_LOCAL_TOKEN`; without either, no token is required.
   */
  token?: string | undefined;
  /** How long ended jobs are kept, in milliseconds; default forever. */
  keep?: number | undefined;
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
export async function startResonate({
  port,
  data,
  token = process.env.RESONATE_LOCAL_TOKEN || undefined,
  keep,
  log,
}: ServerOptions): Promise<RunningServer> {
  const { db, file } = openDatabase(data);
  const resonate = new TimedResonate(new Store(new NodeSql(db)), log, { keep });
  const host = { resonate, token, log, usage: () => usageOf(db, file) };
  try {
    // `noDelay`, since an answer is one small write. No time-out, which could close a connection while its client sends.
    const options = { noDelay: true, keepAlive: true, keepAliveTimeout: 0 };
    const server = createServer(options, (req, res) => handle(req, res, host)).listen(port, HOST);
    await once(server, "listening");
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

interface Host {
  resonate: Resonate;
  token: string | undefined;
  log: Logger;
  usage(): object;
}

/** The size of the state, and the size to which it can grow on its disk, in bytes. */
function usageOf(db: DatabaseSync, file: string): { size: number; most?: number } {
  const sql = "SELECT page_count * page_size AS size FROM pragma_page_count(), pragma_page_size()";
  const { size } = db.prepare(sql).get() as { size: number };
  if (file === MEMORY) return { size };
  const { bavail, bsize } = statfsSync(file);
  return { size, most: size + bavail * bsize };
}

async function handle(req: IncomingMessage, res: ServerResponse, host: Host): Promise<void> {
  try {
    await route(req, res, host);
  } catch (error) {
    if (req.destroyed && !req.complete) return; // the client left
    host.log.error({ err: error }, "unexpected error");
    if (res.headersSent) res.destroy();
    else refuse(res, 500, "Internal error");
  }
}

async function route(req: IncomingMessage, res: ServerResponse, host: Host): Promise<void> {
  const { method, headers } = req;
  const [path = ""] = (req.url ?? "").split("?", 1);
  // A page whose own name resolves to this machine (DNS rebinding) can be recognized only by that name in its requests.
  if (!isLocalHost(headers.host)) return refuse(res, 403, "Requests must be addressed to this machine by its name");
  const isRead = method === "GET" || method === "HEAD";
  if (isRead && (path === "/health" || path === "/ready")) return void res.end();
  // Browsers mark the requests of pages: a page must not act on the jobs of the machine that shows it.
  const isFromPage = headers.origin !== undefined || (headers["sec-fetch-site"] ?? "none") !== "none";
  if (isFromPage) return refuse(res, 403, "Requests from web pages are refused");
  if (method === "POST" && path === "/") return answer(req, res, host);
  if (method === "GET" && path === "/usage") {
    if (!isShown(req, host.token)) return refuse(res, 401, "Unauthorized");
    return void res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(host.usage()));
  }
  const [, group, id] = /^\/poll\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  if (isRead && group !== undefined && id !== undefined) return push(req, res, host, decodePart(group), decodePart(id));
  return refuse(res, 404, "404 Not Found");
}

function refuse(res: ServerResponse, status: number, reason: string, headers: Record<string, string> = {}): void {
  res.writeHead(status, { "content-type": "text/plain;charset=UTF-8", ...headers }).end(reason);
}

async function answer(req: IncomingMessage, res: ServerResponse, { resonate, token }: Host): Promise<void> {
  const body = await read(req);
  // The rest of the body is not read, so the connection cannot carry another request.
  if (!body) return refuse(res, 413, TOO_LARGE, { connection: "close" });
  const { status, text, type } = await respondTo(resonate, body, req.headers["content-type"], (auth) =>
    token === undefined || isToken(token, auth) ? undefined : 401,
  );
  res.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
  res.end(text);
}

/** Reads the body; undefined when it is too large. */
async function read(req: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(req.headers["content-length"] ?? 0) > MAX_BODY) return undefined;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= MAX_BODY) return;
      req.pause();
      resolve(undefined);
    });
    req.once("end", () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    req.once("error", reject);
    req.once("close", () => reject(new Error("the request was not sent whole")));
  });
}

/** Whether a request has the right bearer token, or none is required. */
function isShown({ headers }: IncomingMessage, token: string | undefined): boolean {
  const [, shown] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  return token === undefined || isToken(token, shown);
}

async function push(req: IncomingMessage, res: ServerResponse, host: Host, group: string, id: string): Promise<void> {
  const { resonate, token } = host;
  if (!isShown(req, token)) return refuse(res, 401, "Unauthorized");
  const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
  if (req.method === "HEAD") return void res.writeHead(200, headers).end();
  const connection = resonate.connect(group, id);
  if (!connection) return refuse(res, 503, "Poll registration at capacity");
  res.writeHead(200, headers);
  res.write(KEEP_ALIVE.comment);
  const keepAlive = setInterval(() => {
    // A stream that is not read has enough bytes waiting.
    if (!res.writableNeedDrain) res.write(KEEP_ALIVE.comment);
  }, KEEP_ALIVE.interval);
  const gone = new AbortController();
  res.once("close", () => {
    clearInterval(keepAlive);
    gone.abort();
    resonate.disconnect(connection);
  });
  for (;;) {
    const messages = await resonate.next(connection);
    if (!messages) break;
    const isTaken = res.write(messages.map((message) => `data: ${message}\n\n`).join(""));
    // The messages of a slow reader wait in its `PollConnection`, where they are counted.
    if (!isTaken) await once(res, "drain", { signal: gone.signal }).catch(() => {});
  }
  res.end();
}

const NAMES = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Whether a `Host` header names this machine, on any port. */
function isLocalHost(host: string | undefined): boolean {
  const url = URL.parse(`http://${host ?? ""}`);
  return url !== null && url.pathname === "/" && NAMES.has(url.hostname);
}

/** Compares tokens in a time that does not depend on where they differ. */
function isToken(known: string, given: string | undefined): boolean {
  const [a, b] = [known, given ?? ""].map((text) => createHash("sha256").update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(a, b);
}
