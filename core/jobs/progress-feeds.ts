/** Journals and questions of jobs (see `../jobs/journal.ts`), as promises. */

import type { ResonateClient } from "../store/client.ts";
import { childOf, decodeValue, encodeValue } from "../store/codec.ts";
import type { Channel } from "../store/connections.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import { type AnswerEntry, FeedEntry, feedEntryId } from "./progress-feed.ts";

/** An entry of a job's journal: its number, counted from 1, and when it was written; 0 when there is none yet. */
export interface NewestEntry {
  n: number;
  entry: FeedEntry | undefined;
  writtenAt: number;
}

const NONE: NewestEntry = { n: 0, entry: undefined, writtenAt: 0 };

/**
 * How far beyond what is known of a journal it is looked at, in one round, and then all between the last one that is there
 * and the next; so many entries need no third round, and no job that tells of itself by time has more. The last number is
 * only a bound.
 */
const POINTS = [1, 4, 14, 30, 62, 94, 126, 158, 206, 257];

/** The same for a journal that was looked at a short while ago: most often there is nothing new. */
const NEXT = [1, 18];
const SHORT_WHILE = 60_000;

const between = (low: number, high: number): number[] =>
  Array.from({ length: Math.max(high - low - 1, 0) }, (_, i) => low + 1 + i);

/** For how long what was read is told again, in milliseconds. */
const RECENT = 1_000;

/** Of how many journals it is remembered what was read. */
const MOST_READ = 5_000;

/** What was read of journals. Values alone, no promises: requests may share them. An entry never changes. */
export class Read {
  readonly #journals = new Map<string, { newest: NewestEntry; at: number }>();

  get(promiseId: string): { newest: NewestEntry; at: number } | undefined {
    return this.#journals.get(promiseId);
  }

  put(promiseId: string, newest: NewestEntry): NewestEntry {
    this.#journals.delete(promiseId);
    if (this.#journals.size >= MOST_READ) this.#journals.delete(this.#journals.keys().next().value as string);
    this.#journals.set(promiseId, { newest, at: Date.now() });
    return newest;
  }
}

/** Every method throws {@link ResonateUnavailable} when the server cannot be reached or cannot answer. */
export class ProgressFeeds {
  readonly #client: ResonateClient;
  readonly #read: Read;

  constructor(client: ResonateClient, read = new Read()) {
    this.#client = client;
    this.#read = read;
  }

  /** The newest entry of a journal as it was a second ago at most: whoever looks at a job often asks no more for it. */
  async recent(promiseId: string, signal?: AbortSignal): Promise<NewestEntry> {
    const known = this.#read.get(promiseId);
    return known && Date.now() - known.at < RECENT ? known.newest : this.newest(promiseId, signal);
  }

  /** The newest entry of the journal of a promise, in two rounds of requests; in one of one when nothing has come lately. */
  async newest(promiseId: string, signal?: AbortSignal): Promise<NewestEntry> {
    const known = this.#read.get(promiseId);
    let newest = known?.newest ?? NONE;
    let points = known && Date.now() - known.at < SHORT_WHILE ? NEXT : POINTS;
    for (let end = newest.n; newest.n === end; points = POINTS) {
      const { n } = newest;
      const look = async (numbers: readonly number[]) => {
        const entries = await Promise.all(numbers.map((number) => this.#entry(promiseId, number, signal)));
        newest = entries.findLast((entry) => entry !== undefined) ?? newest;
      };
      end = n + (points.at(-1) as number) - 1;
      await look(points.slice(0, -1).map((point) => n + point));
      await look(between(newest.n, n + (points.find((point) => n + point > newest.n) ?? 0)));
    }
    return this.#read.put(promiseId, newest);
  }

  /**
   * Writes the `n`th entry of the journal of the promise `promiseId`. False when there is another one, which stays as it
   * is. `timeoutAt` is the promise's; for how long it is tried, in milliseconds, is `patience`.
   */
  async write(
    promiseId: string,
    n: number,
    entry: FeedEntry,
    { timeoutAt, patience }: { timeoutAt: number; patience?: number | undefined },
  ): Promise<boolean> {
    const id = feedEntryId(promiseId, n);
    // There already, with what it says as its parameter: one request, unless somebody waits for it.
    const now = Date.now() - 1;
    const written = childOf(promiseId, id, now, { param: entry, tags: { "resonate:timer": "true" } });
    let record = await this.#client.call(written, undefined, patience);
    if (record?.state === "pending" && record.timeoutAt === timeoutAt)
      record = await this.#resolve(id, entry, patience);
    const { data } = written.data.param;
    return !record || record.param.data === data || record.value.data === data;
  }

  /** Asks for the `n`th entry of a journal to be pushed when it is written. Whether it has been already. */
  async listenToEntry(
    promise: { id: string; timeoutAt: number },
    n: number,
    channel: Channel,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const id = feedEntryId(promise.id, n);
    await this.#client.call(childOf(promise.id, id, promise.timeoutAt), signal);
    return this.#listen(id, channel, signal);
  }

  /** When a question was answered, in milliseconds since the epoch; undefined while it is open. */
  async answeredAt(questionId: string, signal?: AbortSignal): Promise<number | undefined> {
    const record = await this.#get(questionId, signal);
    return record?.state === "pending" ? undefined : (record?.settledAt ?? 0);
  }

  /** Asks for the answer to a question to be pushed. Whether it has been given already. */
  listenToQuestion(questionId: string, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    return this.#listen(questionId, channel, signal);
  }

  /** Answers a question; of several answers the first one counts. */
  async answer(questionId: string, answer: AnswerEntry): Promise<void> {
    await this.#resolve(questionId, answer);
  }

  async #entry(promiseId: string, n: number, signal?: AbortSignal): Promise<NewestEntry | undefined> {
    const record = await this.#get(feedEntryId(promiseId, n), signal);
    if (!record) return undefined;
    const isResolved = record.state === "resolved" && record.value.data;
    const entry = FeedEntry.safeParse(decodeValue(isResolved ? record.value : record.param));
    return entry.success ? { n, entry: entry.data, writtenAt: record.settledAt ?? record.createdAt } : undefined;
  }

  #get(id: string, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    return this.#client.call({ kind: "promise.get", data: { id } }, signal);
  }

  #resolve(id: string, value: unknown, patience?: number): Promise<PromiseRecord | undefined> {
    const data = { id, state: "resolved" as const, value: encodeValue(value) };
    return this.#client.call({ kind: "promise.settle", data }, undefined, patience);
  }

  async #listen(id: string, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    const data = { awaited: id, address: channel.address };
    return (await this.#client.call({ kind: "promise.register_listener", data }, signal))?.state !== "pending";
  }
}
