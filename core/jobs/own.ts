/**
 * The jobs that a caller started, newest first: from its list (`listing.ts`), and of those from before there were lists, or
 * where callers are not told apart, by a search for their tags. A job that the caller created carries them itself; of a
 * shared one that was there, the record that the caller started it does.
 */
import type { Job } from "../definitions/job.ts";
import type { ResonateClient } from "../store/client.ts";
import { childOf, decodeValue } from "../store/codec.ts";
import { SearchRefused } from "../store/failures.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { DurablePromise } from "./durable-promise.ts";
import type { ChainPosition, Listed, Listing } from "./listing.ts";
import type { Names } from "./names.ts";

/** A job that a caller started. */
export interface OwnJob extends Listed {
  /** Without its result; undefined where it has to be read. */
  promise?: DurablePromise | undefined;
}

/** Where a list goes on: in the chains of the caller's list, or after a job that was found by a search. */
export type Cursor = { chains: ChainPosition } | { after: Pick<OwnJob, "startedAt" | "name"> };

/** One step through a caller's jobs: a job, unless there is none of the kind there, and where it goes on. */
export interface OwnStep {
  job: OwnJob | undefined;
  cursor: Cursor;
}

/** The most promises that a search looks at. */
const MAX_FOUND = 5_000;

/** How many promises a search asks for at once: few at first, as their results come with them, then for so many characters. */
const PAGE = { first: 10, most: 1_000, characters: 2_000_000 };

const CALLER = "durable-mcp:caller";
const KIND = "durable-mcp:kind";

/** Of what is on its caller's list: a search is for what is not. */
const LISTED = "durable-mcp:listed";

/** The tags by which a job is found for its caller. */
export const ownTags = (names: Names, job: Pick<Job, "kind">): Record<string, string> => ({
  [CALLER]: names.owner,
  [KIND]: job.kind,
  ...(!names.isAnyone && { [LISTED]: "true" }),
});

export class Own {
  readonly #client: ResonateClient;
  readonly #names: Names;
  readonly #listing: Listing;

  constructor(client: ResonateClient, names: Names, listing: Listing) {
    this.#client = client;
    this.#names = names;
    this.#listing = listing;
  }

  /** Adds a job to the caller's list. */
  async add(name: string, startedAt: number): Promise<void> {
    if (await this.#listing.add(name, startedAt)) await this.#begin();
  }

  /**
   * The caller's jobs, of one kind or of all, newest first. Returns whether that were all: a search looks at a bounded
   * number.
   *
   * @throws {SearchRefused} where there is no list
   */
  async *started(
    { kind, cursor }: { kind?: string | undefined; cursor?: Cursor | undefined },
    signal?: AbortSignal,
  ): AsyncGenerator<OwnStep, boolean> {
    let after = cursor && "after" in cursor ? cursor.after : undefined;
    if (this.#names.isAnyone) return yield* this.#found(kind, after, signal);
    if (!after) {
      const position = cursor && "chains" in cursor ? cursor.chains : await this.#listing.newest(signal);
      for await (const { listed: job, next } of this.#listing.from(position, signal)) {
        yield { job: job && (kind === undefined || job.job.kind === kind) ? job : undefined, cursor: { chains: next } };
      }
      const begun = await this.#client.call({ kind: "promise.get", data: { id: this.#beginId } }, signal);
      // Without a list there may be jobs from before there were any.
      if (begun && decodeValue(begun.param) !== true) return true;
      after = { startedAt: Number.MAX_SAFE_INTEGER, name: "" };
    }
    try {
      return yield* this.#found(kind, after, signal);
    } catch (error) {
      if (error instanceof SearchRefused) return true;
      throw error;
    }
  }

  get #beginId(): string {
    return this.#names.listId("begin");
  }

  /** Notes, once and for all, whether the caller had jobs before it had a list. */
  async #begin(): Promise<void> {
    const id = this.#beginId;
    if (await this.#client.call({ kind: "promise.get", data: { id } })) return;
    let before = false;
    try {
      const page = await this.#client.search({ tags: { [CALLER]: this.#names.owner }, limit: PAGE.first });
      before = page.promises.some(({ tags }) => tags[LISTED] === undefined) || typeof page.cursor === "string";
    } catch (error) {
      if (!(error instanceof SearchRefused)) throw error;
    }
    await this.#client.call(childOf(id, id, Date.now() - 1, { param: before }));
  }

  async *#found(
    kind: string | undefined,
    after: Pick<OwnJob, "startedAt" | "name"> | undefined,
    signal?: AbortSignal,
  ): AsyncGenerator<OwnStep, boolean> {
    const { jobs, complete } = await this.#search(kind, signal);
    for (const job of jobs.sort(newestFirst)) {
      if (after && newestFirst(after, job) >= 0) continue;
      yield { job, cursor: { after: { startedAt: job.startedAt, name: job.name } } };
    }
    return complete;
  }

  async #search(kind: string | undefined, signal?: AbortSignal): Promise<{ jobs: OwnJob[]; complete: boolean }> {
    const tags = { [CALLER]: this.#names.owner, ...(kind !== undefined && { [KIND]: kind }) };
    const jobs: OwnJob[] = [];
    let looked = 0;
    let limit = PAGE.first;
    let cursor: string | undefined;
    do {
      const page = await this.#client.search({ tags, limit, ...(cursor !== undefined && { cursor }) }, signal);
      let characters = 0;
      for (const record of page.promises) {
        characters += (record.value.data?.length ?? 0) + (record.param.data?.length ?? 0) + 500;
        const isListed = !this.#names.isAnyone && record.tags[LISTED] !== undefined;
        const job = isListed ? undefined : this.#ownJob({ ...record, value: {} });
        if (job) jobs.push(job);
      }
      looked += page.promises.length;
      const each = Math.max(1, characters / Math.max(1, page.promises.length));
      limit = Math.min(PAGE.most, limit * 4, Math.max(1, Math.floor(PAGE.characters / each)));
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && looked < MAX_FOUND);
    return { jobs, complete: cursor === undefined };
  }

  #ownJob(record: PromiseRecord): OwnJob | undefined {
    const [id = "", child] = record.id.split(":", 2);
    const found = this.#names.find(id);
    const promise = child === undefined ? this.#names.decode(record) : undefined;
    return found && (child !== undefined || promise) && { ...found, startedAt: record.createdAt, promise };
  }
}

function newestFirst(a: Pick<OwnJob, "startedAt" | "name">, b: Pick<OwnJob, "startedAt" | "name">): number {
  return b.startedAt - a.startedAt || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

/** A cursor as text. It says nothing of whose jobs are listed: they are always the caller's. */
export function textOf(cursor: Cursor): string {
  return "chains" in cursor ? cursor.chains.join(".") : `${cursor.after.startedAt} ${cursor.after.name}`;
}

/** What {@link textOf} made a text of; undefined for what it did not make. */
export function cursorIn(text: string): Cursor | undefined {
  if (/^\d{1,9}(\.\d{1,9}){3}$/.test(text)) return { chains: text.split(".").map(Number) };
  const [, startedAt, name] = /^(\d{1,16}) (.+)$/s.exec(text) ?? [];
  return startedAt === undefined || name === undefined ? undefined : { after: { startedAt: Number(startedAt), name } };
}
