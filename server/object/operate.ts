/** Answers the requests of operators: usage, a pause, all rows, the removal of a caller, an earlier state. */
import { type BackupPosition, type BackupRow, isEmpty, readRows, writeRows } from "../engine/backup.ts";
import { countPromisesOf, removePromisesOf } from "../engine/callers.ts";
import type { ObjectState } from "./platform.ts";
import type { StoreSql } from "./store-sql.ts";
import type { Notes } from "./tables.ts";

/** The path of an operator's requests, below that of requests from outside of the account. */
export const OPERATE_PATH = "/operate/";

/** The requests with their parameters. Others are refused: a misspelled one would change what is read, replaced or removed. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  "GET usage": [],
  "POST rest": ["forever"],
  "POST wake": [],
  "GET rows": ["after"],
  "POST rows": ["first"],
  "GET key": [],
  "POST key": [],
  "POST bucket": ["name", "page", "after"],
  "POST page": ["name", "page"],
  "GET bucket": ["name", "page"],
  "GET caller": ["caller"],
  "POST caller": ["caller"],
  "GET bookmark": ["time"],
  "POST recover": ["bookmark", "time"],
};

/** Those that a request must have if its path takes them. */
const REQUIRED = ["name", "page", "caller"];

/** How long the server stays paused after an operator's last request. */
const PAUSE_MS = 60_000;

/** How many pages one request writes to the bucket: its CPU time and its subrequests are limited. */
const MAX_PAGES_PER_REQUEST = 20;

/** How many promises of a caller one request removes. */
const MAX_PROMISES_PER_REMOVAL = 2_000;

/** The part of an R2 bucket that is used. */
export interface Bucket {
  put(key: string, text: string): Promise<unknown>;
  get(key: string): Promise<{ text(): Promise<string> } | null>;
}

/** The server that an operator pauses and resumes. */
export interface PausableServer {
  usage(): object;
  /** Until that time, in milliseconds since the epoch, the server answers no requests and handles no time-outs. */
  pause(until: number): void;
  readonly pausedUntil: number;
  resume(): void;
}

export interface BackupEnv {
  /** The bucket for backups. */
  BACKUPS?: Bucket;
  RESONATE_NAMESPACE?: string;
}

export class Operator {
  readonly #state: ObjectState;
  readonly #sql: StoreSql;
  readonly #notes: Notes;
  readonly #server: PausableServer;
  readonly #bucket: Bucket | undefined;
  readonly #namespace: string;

  constructor(state: ObjectState, sql: StoreSql, notes: Notes, server: PausableServer, env: BackupEnv) {
    this.#state = state;
    this.#sql = sql;
    this.#notes = notes;
    this.#server = server;
    this.#bucket = env.BACKUPS;
    this.#namespace = env.RESONATE_NAMESPACE ?? "";
  }

  /** Answers a request whose token has been checked; `path` is the part of its path after {@link OPERATE_PATH}. */
  async fetch(request: Request, path: string): Promise<Response> {
    const query = new URL(request.url).searchParams;
    const asked = `${request.method} ${path}`;
    const problem = problemIn(query, PARAMETERS[asked]);
    if (problem !== undefined) return refusal(400, problem);
    switch (asked) {
      case "GET usage":
        return Response.json(this.#server.usage());
      case "POST rest":
        return this.#pause(query.has("forever") ? Number.POSITIVE_INFINITY : Date.now() + PAUSE_MS);
      case "POST wake":
        this.#notes.set("rests", "");
        this.#notes.set("restoring", "");
        this.#server.resume();
        return Response.json({});
      case "GET rows":
        return this.#whilePaused(() => readRows(this.#sql, position(query.get("after"))));
      case "POST rows":
        return this.#whilePaused(async () =>
          this.#write((await request.json()) as BackupRow[], query.get("first") !== null),
        );
      case "GET key":
        return Response.json({ key: this.#notes.get("key") ?? null });
      case "POST key":
        this.#notes.set("key", await request.text());
        return Response.json({});
      case "POST bucket":
        return this.#whilePaused(() =>
          this.#toBucket(query.get("name") ?? "", Number(query.get("page")), query.get("after")),
        );
      case "POST page":
        return this.#whilePaused(() => this.#putPage(`${query.get("name")}/${query.get("page")}`, request.text()));
      case "GET bucket":
        return this.#fromBucket(query.get("name") ?? "", query.get("page") ?? "");
      case "GET caller":
        return Response.json({ count: await countPromisesOf(this.#sql, this.#owner(query)) });
      case "POST caller":
        return Response.json({
          count: await removePromisesOf(this.#sql, this.#owner(query), MAX_PROMISES_PER_REMOVAL),
        });
      case "GET bookmark":
        return this.#history(async () => ({ bookmark: await this.#bookmark(query.get("time")) }));
      case "POST recover":
        return this.#history(() => this.#recover(query));
      default:
        return new Response("404 Not Found", { status: 404 });
    }
  }

  #owner(query: URLSearchParams) {
    return { caller: query.get("caller") ?? "", namespace: this.#namespace };
  }

  #pause(until: number): Response {
    if (until === Number.POSITIVE_INFINITY) this.#notes.set("rests", "forever");
    this.#server.pause(until);
    return Response.json({});
  }

  /** Reads or writes rows and prolongs the pause; 409 when the server is not paused, since rows may have changed. */
  async #whilePaused(work: () => object | Promise<object>): Promise<Response> {
    if (Date.now() >= this.#server.pausedUntil)
      return refusal(409, "The server is not paused: what was read may have changed.");
    this.#server.pause(Math.max(this.#server.pausedUntil, Date.now() + PAUSE_MS));
    return Response.json(await work());
  }

  #write(rows: readonly BackupRow[], isFirst: boolean): object {
    if (isFirst) {
      if (this.#notes.get("restoring") !== "1" && !isEmpty(this.#sql))
        return { refused: "The server has jobs already." };
      // Nothing may run until the restore is complete, even if the command exits before that.
      this.#notes.set("restoring", "1");
      this.#pause(Number.POSITIVE_INFINITY);
    }
    writeRows(this.#sql, rows);
    return {};
  }

  async #toBucket(name: string, firstPage: number, after: string | null): Promise<object> {
    if (!this.#bucket) return { refused: "No bucket is bound as BACKUPS (wrangler.toml, [[r2_buckets]])." };
    let next = position(after);
    for (let n = firstPage; n < firstPage + MAX_PAGES_PER_REQUEST; n++) {
      const page = readRows(this.#sql, next);
      await this.#bucket.put(`${name}/${n}`, JSON.stringify(page.rows));
      if (!page.next) {
        await this.#bucket.put(`${name}/whole`, JSON.stringify({ pages: n + 1, key: this.#notes.get("key") ?? null }));
        return { pages: n + 1 };
      }
      next = page.next;
    }
    return { page: firstPage + MAX_PAGES_PER_REQUEST, after: next };
  }

  async #putPage(name: string, text: Promise<string>): Promise<object> {
    await this.#bucket?.put(name, await text);
    return {};
  }

  async #fromBucket(name: string, page: string): Promise<Response> {
    const content = await this.#bucket?.get(`${name}/${page}`);
    return content ? new Response(await content.text()) : refusal(404, `The bucket has no ${name}/${page}.`);
  }

  async #bookmark(time: string | null): Promise<string> {
    const { storage } = this.#state;
    return time === null ? storage.getCurrentBookmark() : storage.getBookmarkForTime(new Date(time));
  }

  /** Restarts the object at once, with the state of another time. */
  async #recover(query: URLSearchParams): Promise<object> {
    const bookmark = query.get("bookmark") ?? (await this.#bookmark(query.get("time")));
    const undo = await this.#state.storage.onNextSessionRestoreBookmark(bookmark);
    setTimeout(() => this.#state.abort("recovered"), 100);
    return { bookmark, undo };
  }

  /** Answers a request about earlier states; 400 in a local installation, which has none. */
  async #history(work: () => Promise<object>): Promise<Response> {
    try {
      return Response.json(await work());
    } catch (error) {
      return refusal(400, error instanceof Error ? error.message : String(error));
    }
  }
}

/** What is wrong with the parameters of a request that may have these; undefined if they fit. */
function problemIn(query: URLSearchParams, known: readonly string[] = []): string | undefined {
  const unknown = [...query.keys()].find((name) => !known.includes(name) || query.getAll(name).length > 1);
  if (unknown !== undefined) return `${unknown} is no parameter of this request, or is there twice.`;
  const missing = known.find((name) => REQUIRED.includes(name) && !query.get(name));
  return missing && `${missing} is missing.`;
}

const position = (after: string | null): BackupPosition | undefined => (after === null ? undefined : JSON.parse(after));
const refusal = (status: number, reason: string) => Response.json({ refused: reason }, { status });
