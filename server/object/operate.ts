/** What an operator may ask of the object, with a token of his own: how much it does, all that it keeps, an earlier state. */
import { type BackupRow, isEmpty, type Place, readRows, writeRows } from "../backup.ts";
import { countOf, forgetSome } from "../wire/callers.ts";
import type { ObjectSql } from "./object-sql.ts";
import type { ObjectState } from "./platform.ts";
import type { Notes } from "./tables.ts";

/** Under which path, of those that are reached from elsewhere. */
export const OPERATE = "/operate/";

/** For how long the server rests after an operator has read of it, in milliseconds: he reads on, or it goes on by itself. */
const REST = 60_000;

/** How many pages one request writes to the bucket: it has a limit of CPU time, and of requests of its own. */
const PAGES = 20;

/** How many promises of a caller one request removes. */
const FORGOTTEN = 2_000;

/** What there is here of a bucket of the platform's (R2). */
export interface Bucket {
  put(key: string, text: string): Promise<unknown>;
  get(key: string): Promise<{ text(): Promise<string> } | null>;
}

/** What an operator sees and does of the server. */
export interface Operated {
  /** What it has done since it woke. */
  usage(): object;
  /** Answers nothing and does nothing until then, in milliseconds since the epoch. */
  rest(until: number): void;
  readonly restsUntil: number;
  /** Goes on. */
  wake(): void;
}

export interface OperatorEnv {
  /** Where backups go, when one is configured. */
  BACKUPS?: Bucket;
  RESONATE_NAMESPACE?: string;
}

export class Operator {
  readonly #state: ObjectState;
  readonly #sql: ObjectSql;
  readonly #notes: Notes;
  readonly #server: Operated;
  readonly #bucket: Bucket | undefined;
  readonly #namespace: string;

  constructor(state: ObjectState, sql: ObjectSql, notes: Notes, server: Operated, env: OperatorEnv) {
    this.#state = state;
    this.#sql = sql;
    this.#notes = notes;
    this.#server = server;
    this.#bucket = env.BACKUPS;
    this.#namespace = env.RESONATE_NAMESPACE ?? "";
  }

  /** Answers a request whose token has been checked; `path` is what follows {@link OPERATE}. */
  async fetch(request: Request, path: string): Promise<Response> {
    const asked = new URL(request.url).searchParams;
    switch (`${request.method} ${path}`) {
      case "GET usage":
        return Response.json(this.#server.usage());
      case "POST rest":
        return this.#rest(asked.has("forever") ? Number.POSITIVE_INFINITY : Date.now() + REST);
      case "POST wake":
        this.#notes.set("rests", "");
        this.#server.wake();
        return Response.json({});
      case "GET rows":
        return this.#resting(() => readRows(this.#sql, place(asked.get("after"))));
      case "POST rows":
        return this.#resting(async () =>
          this.#write((await request.json()) as BackupRow[], asked.get("first") !== null),
        );
      case "GET key":
        return Response.json({ key: this.#notes.get("key") ?? null });
      case "POST key":
        this.#notes.set("key", await request.text());
        return Response.json({});
      case "POST bucket":
        return this.#resting(() =>
          this.#toBucket(asked.get("name") ?? "", Number(asked.get("page")), asked.get("after")),
        );
      case "GET bucket":
        return this.#fromBucket(asked.get("name") ?? "", asked.get("page") ?? "");
      case "GET caller":
        return Response.json({ count: await countOf(this.#sql, this.#owner(asked)) });
      case "POST caller":
        return Response.json({ count: await forgetSome(this.#sql, this.#owner(asked), FORGOTTEN) });
      case "GET bookmark":
        return this.#history(async () => ({ bookmark: await this.#bookmark(asked.get("time")) }));
      case "POST recover":
        return this.#history(() => this.#recover(asked));
      default:
        return new Response("404 Not Found", { status: 404 });
    }
  }

  #owner(asked: URLSearchParams) {
    return { caller: asked.get("caller") ?? "", namespace: this.#namespace };
  }

  #rest(until: number): Response {
    if (until === Number.POSITIVE_INFINITY) this.#notes.set("rests", "forever");
    this.#server.rest(until);
    return Response.json({});
  }

  /** What is read or written while the server rests, which it goes on doing; 409 when it does not, and may have changed. */
  async #resting(work: () => object | Promise<object>): Promise<Response> {
    if (Date.now() >= this.#server.restsUntil)
      return refused(409, "The server does not rest: what was read is of no use.");
    this.#server.rest(Math.max(this.#server.restsUntil, Date.now() + REST));
    return Response.json(await work());
  }

  #write(rows: readonly BackupRow[], isFirst: boolean): object {
    if (isFirst && !isEmpty(this.#sql)) return { refused: "The server has jobs already." };
    writeRows(this.#sql, rows);
    return {};
  }

  async #toBucket(name: string, page: number, after: string | null): Promise<object> {
    if (!this.#bucket) return { refused: "No bucket is bound as BACKUPS (wrangler.toml, [[r2_buckets]])." };
    let next = place(after);
    for (let n = page; n < page + PAGES; n++) {
      const read = readRows(this.#sql, next);
      await this.#bucket.put(`${name}/${n}`, JSON.stringify(read.rows));
      if (!read.next) {
        await this.#bucket.put(`${name}/whole`, JSON.stringify({ pages: n + 1, key: this.#notes.get("key") ?? null }));
        return { pages: n + 1 };
      }
      next = read.next;
    }
    return { page: page + PAGES, after: next };
  }

  async #fromBucket(name: string, page: string): Promise<Response> {
    const found = await this.#bucket?.get(`${name}/${page}`);
    return found ? new Response(await found.text()) : refused(404, `The bucket has no ${name}/${page}.`);
  }

  async #bookmark(time: string | null): Promise<string> {
    const { storage } = this.#state;
    return time === null ? storage.getCurrentBookmark() : storage.getBookmarkForTime(new Date(time));
  }

  /** The state of another time is there when the object has started anew, which it does at once. */
  async #recover(asked: URLSearchParams): Promise<object> {
    const bookmark = asked.get("bookmark") ?? (await this.#bookmark(asked.get("time")));
    const undo = await this.#state.storage.onNextSessionRestoreBookmark(bookmark);
    setTimeout(() => this.#state.abort("recovered"), 100);
    return { bookmark, undo };
  }

  /** What the platform keeps of former states; on a machine of one's own it keeps none. */
  async #history(work: () => Promise<object>): Promise<Response> {
    try {
      return Response.json(await work());
    } catch (error) {
      return refused(400, error instanceof Error ? error.message : String(error));
    }
  }
}

const place = (after: string | null): Place | undefined => (after === null ? undefined : JSON.parse(after));
const refused = (status: number, why: string) => Response.json({ refused: why }, { status });
