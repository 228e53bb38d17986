/**
 * What a job has done, as records: promises `<job's promise>:e1`, `:e2`, … in the order in which their outcomes reached
 * the function. A record never changes, but for a sleep that ends and a question that is answered.
 */

import type { Question } from "../definitions/context.ts";
import { fromBase64 } from "../store/base64.ts";
import { journalEntryId } from "../store/ids.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { StoredError } from "./values.ts";

/** What a record says. `op` names the call that it is about: the names of its contexts, its own, and which of that name. */
export type JournalEntry = {
  op: string;
  /** What had settled outside (sleeps, answers, other jobs) and reached the function since the record before, in that order. */
  after?: string[];
  /**
   * The first of the records that were written at once with this one, where that is another: none of their outcomes had
   * reached the function when this one was written, and any of them may be missing after a crash.
   */
  with?: number;
  /** Under which version of the job's task it was written; unknown of those from before they said. */
  v?: number;
} & (
  | { kind: "step" | "start" | "until"; value?: unknown; error?: StoredError }
  | { kind: "race"; winner: string }
  | { kind: "sleep" }
  /** `promise` is what it was asked with before there were records. */
  | { kind: "ask"; question: Question; promise?: string }
  /** A step that is begun at most once is; or the first look of an `until`, `at` milliseconds since the epoch. */
  | { kind: "begin"; of: "step" | "until"; at: number }
  /** An attempt failed, and another one is due when this promise resolves. */
  | { kind: "retry"; attempt: number; since: number; error: StoredError }
  /**
   * What it comes `after` is settled; `op` is the last of that. Written before work begins that has seen it; or
   * so that the job is seen to go on, whose `op` is empty: see `standstill.ts`.
   */
  | { kind: "heard" }
);

/** An event with the promise that holds it. */
export class JournalRecord {
  readonly n: number;
  /** Without its value, where that is an object. */
  readonly event: JournalEntry;
  /** Without its parameter and tags. */
  promise: PromiseRecord;
  readonly #text: string | undefined;

  /** @throws {SyntaxError} for what is no record */
  constructor(n: number, promise: PromiseRecord) {
    const text = fromBase64(promise.param.data ?? "");
    const event = JSON.parse(text) as JournalEntry;
    if (typeof event?.op !== "string") throw new SyntaxError("it is no record");
    const holdsObject = "value" in event && typeof event.value === "object" && event.value !== null;
    if (holdsObject) delete event.value;
    this.n = n;
    this.event = event;
    this.promise = lean(promise);
    this.#text = holdsObject ? text : undefined;
  }

  /** What the call resolved with, each time anew: a function may change what it was handed. */
  get value(): unknown {
    const event = this.#text === undefined ? this.event : (JSON.parse(this.#text) as JournalEntry);
    return "value" in event ? event.value : undefined;
  }

  /** Roughly how much memory it takes, in bytes. */
  get size(): number {
    return 700 + (this.#text?.length ?? 0);
  }
}

const NOTHING = {};

/** A promise without what is known of it already: there may be thousands of them in memory. */
const lean = (promise: PromiseRecord): PromiseRecord => ({ ...promise, param: NOTHING, tags: NOTHING });

export const eventId = journalEntryId;

/**
 * How many records may be under way to the server when `acknowledged` are there: no more than so many can be missing
 * before one that is there, which is how a reader knows that it has seen the last.
 */
export const maxUnderWay = (acknowledged: number): number => Math.min(16, acknowledged + 1);

/** What a worker knows of a job's records. */
export class Journal {
  readonly events: JournalRecord[] = [];
  /** The version of the job's task under which this was known to be all. */
  version = 0;
  readonly #pending = new Map<string, JournalRecord>();
  readonly #elsewhere = new Map<string, PromiseRecord>();

  get last(): number {
    return this.events.at(-1)?.n ?? 0;
  }

  /** Roughly how much memory it takes, in bytes. */
  size = 0;

  add(promise: PromiseRecord, n: number): JournalRecord | undefined {
    try {
      const recorded = new JournalRecord(n, promise);
      this.events.push(recorded);
      if (promise.state === "pending") this.#pending.set(promise.id, recorded);
      this.size += recorded.size;
      return recorded;
    } catch {
      return undefined;
    }
  }

  /** A promise has settled, of this job or another: it never changes again, and so is never asked for again. */
  settled(promise: PromiseRecord): void {
    const settled = lean(promise);
    const own = this.#pending.get(promise.id);
    if (own) own.promise = settled;
    else this.#elsewhere.set(promise.id, settled);
    this.#pending.delete(promise.id);
    this.size += (own ? 0 : 500) + (promise.value.data?.length ?? 0);
  }

  /** The promise of another job, if it is known to have settled. */
  elsewhere(id: string): PromiseRecord | undefined {
    return this.#elsewhere.get(id);
  }

  /** Reads what there is beyond what is known, several at a time. */
  async load(job: string, get: (id: string, n: number) => Promise<PromiseRecord | undefined>): Promise<void> {
    let n = this.last + 1;
    let missing = 0;
    // At first what tells that a job which has slept once has no more than that.
    for (let batch = 3; batch > 0; batch = missing === 0 ? 32 : maxUnderWay(this.events.length) - missing) {
      const records = await Promise.all(Array.from({ length: batch }, (_, i) => get(eventId(job, n + i), n + i)));
      for (const [i, record] of records.entries()) {
        if (record) this.add(record, n + i);
        missing = record ? 0 : missing + 1;
      }
      n += batch;
    }
  }
}
