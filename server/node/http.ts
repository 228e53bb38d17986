/** Serves the standalone server's HTTP interface (`POST /`, `GET /poll/{group}/{id}`, `/health`, `/ready`), and `/usage`. */
import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { statfsSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { Resonate } from "../engine/resonate.ts";
import { Store } from "../engine/store.ts";
import { BODY_TOO_LARGE, MAX_BODY_BYTES, respondTo } from "../wire/answer.ts";
import {
  EVENT_STREAM_HEADERS,
  eventsOf,
  KEEP_ALIVE_COMMENT,
  KEEP_ALIVE_INTERVAL_MS,
  parsePollPath,
} from "../wire/event-stream.ts";
import { IN_MEMORY, openDatabase } from "./database.ts";
import { NodeSql } from "./node-sql.ts";
import { TimedResonate } from "./timed-resonate.ts";

const LOOPBACK_ADDRESS = "127.0.0.1";

/** How long open answers may still take when the server is closed. */
const CLOSE_TIMEOUT_MS = 200;

export interface ServerOptions {
  /** 0 for any free port. */
  port: number;
  /** The directory of the state file; undefined keeps the state in memory only. */
  data: string | undefined;
  /**
   * The token that clients send, as to the standalone server: in `head.auth` of a request, or as the bearer token of a connection.
   * Default `RESONATE_LOCAL_TOKEN`; without either, no token is required.
   */
  token?: string | undefined;
  /** How long finished jobs are kept, in milliseconds; default forever. */
  retention?: number | undefined;
  log: Logger;
}

export interface RunningServer {
  url: string;
  /** The state file, or `:memory:`. */
  file: string;
  /** Closes every connection and the state file. */
  close(): Promise<void>;
}

/** Starts a server on 127.0.0.1. Rejects with a `StartError`, or with Node's error if the port is taken. */
export async function startResonate({
  port,
  data,
  token = process.env.RESONATE_LOCAL_TOKEN || undefined,
  retention,
  log,
}: ServerOptions): Promise<RunningServer> {
  const { db, file } = openDatabase(data);
  const resonate = new TimedResonate(new Store(new NodeSql(db)), log, { retention });
  const host = { resonate, token, log, usage: () => usageOf(db, file) };
  try {
    // `noDelay`, since an answer is one small write. No time-out, which could close a connection while its client sends.
    const options = { noDelay: true, keepAlive: true, keepAliveTimeout: 0 };
    const server = createServer(options, (req, res) => handle(req, res, host)).listen(port, LOOPBACK_ADDRESS);
    await once(server, "listening");
    return {
      url: `http://${LOOPBACK_ADDRESS}:${(server.address() as AddressInfo).port}`,
      file,
      async close() {
        const closed = new Promise((resolve) => server.close(resolve));
        resonate.close();
        setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS).unref();
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
function usageOf(db: DatabaseSync, file: string): { size: number; maxBytes?: number } {
  const sql = "SELECT page_count * page_size AS size FROM pragma_page_count(), pragma_page_size()";
  const { size } = db.prepare(sql).get() as { size: number };
  if (file === IN_MEMORY) return { size };
  const { bavail, bsize } = statfsSync(file);
  return { size, maxBytes: size + bavail * bsize };
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
    if (!isAuthorized(req, host.token)) return refuse(res, 401, "Unauthorized");
    return void res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(host.usage()));
  }
  const poll = isRead && parsePollPath(path);
  if (poll) return push(req, res, host, poll);
  return refuse(res, 404, "404 Not Found");
}

function refuse(res: ServerResponse, status: number, reason: string, headers: Record<string, string> = {}): void {
  res.writeHead(status, { "content-type": "text/plain;charset=UTF-8", ...headers }).end(reason);
}

async function answer(req: IncomingMessage, res: ServerResponse, { resonate, token }: Host): Promise<void> {
  const body = await readBody(req);
  // The rest of the body is not read, so the connection cannot carry another request.
  if (!body) return refuse(res, 413, BODY_TOO_LARGE, { connection: "close" });
  const { status, text, type } = await respondTo(resonate, body, req.headers["content-type"], (auth) =>
    token === undefined || isToken(token, auth) ? undefined : 401,
  );
  res.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
  res.end(text);
}

/** Reads the body; undefined if it is too large. */
async function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(req.headers["content-length"] ?? 0) > MAX_BODY_BYTES) return undefined;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= MAX_BODY_BYTES) return;
      req.pause();
      resolve(undefined);
    });
    req.once("end", () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    req.once("error", reject);
    req.once("close", () => reject(new Error("the request was not sent whole")));
  });
}

/** Whether a request has the right bearer token, or none is required. */
function isAuthorized({ headers }: IncomingMessage, token: string | undefined): boolean {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  return token === undefined || isToken(token, bearer);
}

async function push(
  req: IncomingMessage,
  res: ServerResponse,
  { resonate, token }: Host,
  { group, id }: { group: string; id: string },
): Promise<void> {
  if (!isAuthorized(req, token)) return refuse(res, 401, "Unauthorized");
  if (req.method === "HEAD") return void res.writeHead(200, EVENT_STREAM_HEADERS).end();
  const connection = resonate.connect(group, id);
  if (!connection) return refuse(res, 503, "Poll registration at capacity");
  res.writeHead(200, EVENT_STREAM_HEADERS);
  res.write(KEEP_ALIVE_COMMENT);
  const keepAlive = setInterval(() => {
    // A stream that is not read has enough bytes waiting.
    if (!res.writableNeedDrain) res.write(KEEP_ALIVE_COMMENT);
  }, KEEP_ALIVE_INTERVAL_MS);
  const closing = new AbortController();
  res.once("close", () => {
    clearInterval(keepAlive);
    closing.abort();
    resonate.disconnect(connection);
  });
  for (;;) {
    const messages = await resonate.next(connection);
    if (!messages) break;
    const canContinue = res.write(eventsOf(messages));
    // The messages of a slow reader wait in its `PollConnection`, where they are counted.
    if (!canContinue) await once(res, "drain", { signal: closing.signal }).catch(() => {});
  }
  res.end();
}

const LOOPBACK_NAMES = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Whether a `Host` header names this machine, on any port. */
function isLocalHost(host: string | undefined): boolean {
  const url = URL.parse(`http://${host ?? ""}`);
  return url !== null && url.pathname === "/" && LOOPBACK_NAMES.has(url.hostname);
}

/** Compares tokens in a time that does not depend on where they differ. */
function isToken(token: string, bearer: string | undefined): boolean {
  const [a, b] = [token, bearer ?? ""].map((text) => createHash("sha256").update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(a, b);
}
