import { childOf, decodeValue, getOf, resolveOf } from "../../resonate/codec.ts";
import type { Requests } from "../../resonate/connection/client.ts";
import type { Channel } from "../../resonate/connection/connections.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import { feedEntryId } from "../../resonate/ids.ts";
import { lastInRounds } from "../../resonate/sequence.ts";
import { type AnswerEntry, FeedEntry } from "./progress-feed.ts";

/** The newest entry of a progress feed with its number, counted from 1. `n` is 0 while there is none. */
export interface NewestEntry {
  n: number;
  entry: FeedEntry | undefined;
  /** Milliseconds since the epoch. */
  writtenAt: number;
}

export const NO_ENTRY: NewestEntry = { n: 0, entry: undefined, writtenAt: 0 };

/**
 * How far beyond the known entries the first round looks; see {@link lastInRounds}. With these distances two rounds find the
 * last entry of any job that has reported at its regular intervals for a year.
 */
const FIRST_ROUND_DISTANCES = [1, 4, 14, 30, 62, 94, 126, 158, 206, 257];

/** The same for a reader that knows the number of an entry: what follows an entry is mostly nothing. */
const KNOWN_ENTRY_DISTANCES = [1, 2, 18];

/** The same for a feed that was read a short while ago, in milliseconds: mostly nothing new has come. */
const RECENT_ENTRY_DISTANCES = [1, 18];
const RECENT_READ_MS = 60_000;

/** For how long a read entry counts as recent, in milliseconds. */
const CACHE_MS = 1_000;

/** The header of a question's value that tells answers apart, as two people may give the same answer. */
const ANSWERED_BY = "durable-mcp-answered-by";

const MAX_CACHED_FEEDS = 5_000;

/** A job's promise. A job that is started again after it was removed has the same id, and another time of creation. */
type OneJob = Pick<PromiseRecord, "id" | "createdAt">;

/** An entry that was read at a time, in milliseconds since the epoch. */
interface ReadEntry {
  newest: NewestEntry;
  at: number;
}

/** Caches the newest entries that were read. It holds only values, no promises, so requests may share it. */
export class FeedCache {
  readonly #feeds = new Map<string, ReadEntry & { createdAt: number }>();

  get({ id, createdAt }: OneJob): ReadEntry | undefined {
    const cached = this.#feeds.get(id);
    return cached?.createdAt === createdAt ? cached : undefined;
  }

  put({ id, createdAt }: OneJob, newest: NewestEntry): NewestEntry {
    this.#feeds.delete(id);
    if (this.#feeds.size >= MAX_CACHED_FEEDS) this.#feeds.delete(this.#feeds.keys().next().value as string);
    this.#feeds.set(id, { newest, at: Date.now(), createdAt });
    return newest;
  }
}

/**
 * The progress feeds and questions of jobs, as promises. Every method throws {@link ResonateUnavailable} when the server
 * cannot be reached or cannot answer.
 */
export class ProgressFeeds {
  readonly #client: Pick<Requests, "call">;
  readonly #cache: FeedCache;

  constructor(client: Pick<Requests, "call">, cache = new FeedCache()) {
    this.#client = client;
    this.#cache = cache;
  }

  /** The newest entry, at most a second old: for callers that look often. */
  async recent(job: OneJob, signal?: AbortSignal): Promise<NewestEntry> {
    const cached = this.#cache.get(job);
    return cached && Date.now() - cached.at < CACHE_MS ? cached.newest : this.newest(job, signal);
  }

  /** The newest entry: one request if a recent reading still holds, otherwise usually two rounds of requests. */
  async newest(job: OneJob, signal?: AbortSignal): Promise<NewestEntry> {
    const cached = this.#cache.get(job);
    const { newest, at } = cached ?? { newest: NO_ENTRY, at: 0 };
    const rounds =
      Date.now() - at < RECENT_READ_MS ? [RECENT_ENTRY_DISTANCES, FIRST_ROUND_DISTANCES] : [FIRST_ROUND_DISTANCES];
    const get = (n: number) => this.entry(job.id, n, signal);
    const { entry = newest } = await lastInRounds(get, { n: newest.n, entry: newest }, rounds);
    return this.#cache.put(job, entry);
  }

  /** The newest entry, for a reader that has seen the `n`th (0: none): mostly two requests. */
  async newestFrom(job: OneJob, n: number): Promise<NewestEntry> {
    if (this.#cache.get(job)) return this.newest(job);
    const before = { n: Math.max(n - 1, 0), entry: NO_ENTRY };
    const get = (n: number) => this.entry(job.id, n);
    const { n: newest, entry = NO_ENTRY } = await lastInRounds(get, before, [
      KNOWN_ENTRY_DISTANCES,
      FIRST_ROUND_DISTANCES,
    ]);
    // It may have been an entry of an earlier job of this name.
    return newest < n ? this.newest(job) : this.#cache.put(job, entry);
  }

  /**
   * Writes the `n`th entry. False when another entry has that number, which stays as it is. `timeoutAt` is that of the job's
   * promise; `retryForMs` is how long to keep trying, in milliseconds.
   */
  async write(
    promiseId: string,
    n: number,
    entry: FeedEntry,
    { timeoutAt, retryForMs }: { timeoutAt: number; retryForMs?: number | undefined },
  ): Promise<boolean> {
    const id = feedEntryId(promiseId, n);
    // The promise is created settled, with the entry as its parameter. A client that waits for the entry has created it pending
    // before: then a second request resolves it.
    const now = Date.now() - 1;
    const entryPromise = childOf(id, now, { param: entry, tags: { "resonate:timer": "true" } });
    let record = await this.#client.call(entryPromise, undefined, retryForMs);
    if (record?.state === "pending" && record.timeoutAt === timeoutAt)
      record = await this.#client.call(resolveOf(id, entry), undefined, retryForMs);
    const { data } = entryPromise.data.param;
    return !record || record.param.data === data || record.value.data === data;
  }

  /** Asks for the `n`th entry to be pushed when it is written. Returns whether it has been written already. */
  async listenToEntry(
    promise: { id: string; timeoutAt: number },
    n: number,
    channel: Channel,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const id = feedEntryId(promise.id, n);
    await this.#client.call(childOf(id, promise.timeoutAt), signal);
    return this.listen(id, channel, signal);
  }

  /** When a question was answered, in milliseconds since the epoch; undefined while it is open. */
  async answeredAt(questionId: string, signal?: AbortSignal): Promise<number | undefined> {
    const record = await this.#get(questionId, signal);
    return record?.state === "pending" ? undefined : (record?.settledAt ?? 0);
  }

  /**
   * Answers a question, or a callback with a text. Returns whether this answer counts: only the first one does, and none after
   * the job's end.
   */
  async answer(questionId: string, answer: AnswerEntry | string): Promise<boolean> {
    const by = crypto.randomUUID();
    const call = resolveOf(questionId, answer);
    call.data.value.headers = { [ANSWERED_BY]: by };
    const record = await this.#client.call(call);
    return record?.value.headers?.[ANSWERED_BY] === by;
  }

  /** The `n`th entry; undefined while it is not written. */
  async entry(promiseId: string, n: number, signal?: AbortSignal): Promise<NewestEntry | undefined> {
    const record = await this.#get(feedEntryId(promiseId, n), signal);
    if (!record) return undefined;
    const isResolved = record.state === "resolved" && record.value.data;
    const entry = FeedEntry.safeParse(decodeValue(isResolved ? record.value : record.param));
    return entry.success ? { n, entry: entry.data, writtenAt: record.settledAt ?? record.createdAt } : undefined;
  }

  #get(id: string, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    return this.#client.call(getOf(id), signal);
  }

  /** Asks for the settlement of a promise to be pushed, such as the answer to a question. Returns whether it has settled already. */
  async listen(id: string, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    const data = { awaited: id, address: channel.address };
    return (await this.#client.call({ kind: "promise.register_listener", data }, signal))?.state !== "pending";
  }
}
