/**
 * The journal of a job: a sequence of promises in the order in which their outcomes reached the function.
 * A record never changes, except that a sleep ends and a question is answered.
 */
import type { Question } from "../author/context.ts";
import type { StoredError } from "../author/values.ts";
import { fromBase64 } from "../resonate/base64.ts";
import { parseStored, partsIn, RESERVATION_TAG, STARTER_TAG } from "../resonate/codec.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { journalEntryId } from "../resonate/ids.ts";
import { readFrom } from "../resonate/sequence.ts";
import { bytesIn, sizeOf } from "../resonate/size.ts";
import type { Run } from "./state.ts";

/** The content of a record. `op` is the path of its command. */
export type JournalEntry = {
  op: string;
  /** The paths of sleeps, questions and awaits whose outcomes reached the function since the last record, in order. */
  after?: string[];
  /**
   * The number of the first record of the batch; absent in that record. When the batch was written, none of its
   * outcomes had reached the function. A crash may have lost any of its records.
   */
  with?: number;
  /** The version of the job's task under which it was written; only entries that are not written yet lack it. */
  v?: number;
} /** `outsideBytes`: how much was stored with it outside of the job's promises. */ & (
  | { kind: "step" | "start" | "until" | "emit"; value?: unknown; error?: StoredError; outsideBytes?: number }
  /** `failed`: the branch that ended first or all of `ctx.any` failed, or the time of `ctx.timeout` was up. */
  | { kind: "race"; winner: string; failed?: true }
  | { kind: "sleep" }
  /** A question that the job had no room for holds the error in its place. */
  | { kind: "ask"; question: Question; error?: never }
  | { kind: "ask"; question?: never; error: StoredError }
  /** An `atMostOnce` step, or the first look of an `until`, begins; `at` in milliseconds since the epoch. */
  | { kind: "begin"; of: "step" | "until"; at: number }
  /** A job is about to be started that ends with this one; `child`: its name without a generation. */
  | { kind: "begin"; of: "start"; at: number; child: string }
  /** An attempt failed, and the next one is due when this promise resolves. */
  | { kind: "retry"; attempt: number; since: number; error: StoredError }
  /** The outcomes of `after` reached the function, and work that depends on them is about to begin; `op` is the last of them. */
  | { kind: "reached" }
  /** Shows that the job makes progress; `op` is empty. */
  | { kind: "alive" }
  /**
   * The job was cancelled, or its deadline has come: the records that follow are its clean-up. `op` is empty; `unbegun`
   * are the open commands that certainly had no effect. `reason`: why the job cannot end before its deadline, if the function
   * heard of that early.
   */
  | {
      kind: "cancelled";
      by?: "deadline" | undefined;
      reason?: string | undefined;
      unbegun?: string[] | undefined;
    }
);

/** An entry with the promise that holds it. */
export class JournalRecord {
  readonly n: number;
  /** Without its value if that is an object: `#text` holds it. */
  readonly event: JournalEntry;
  /** Without its parameter and tags. */
  promise: PromiseRecord;
  readonly #text: string | undefined;
  /** The bytes of the record and its answer, and of the parts or the output that its command stored besides. */
  readonly storedBytes: number;
  /** Roughly how much memory it takes, in bytes. */
  readonly size: number;

  /** @throws {SyntaxError} where the promise holds no record */
  constructor(n: number, promise: PromiseRecord) {
    const text = fromBase64(promise.param.data ?? "");
    const event = parseStored(text) as JournalEntry;
    if (typeof event?.op !== "string") throw new SyntaxError("it is no record");
    const value = "value" in event ? event.value : undefined;
    const bytesBeside = event.kind === "emit" ? Number(value) : partsIn(value)?.characters;
    this.storedBytes = bytesIn(promise.param) + bytesIn(promise.value) + (bytesBeside || 0);
    const holdsObject = typeof value === "object" && value !== null;
    if (holdsObject && "value" in event) delete event.value;
    this.n = n;
    this.event = event;
    this.promise = withoutContent(promise);
    this.#text = holdsObject ? text : undefined;
    this.size = 700 + (this.#text?.length ?? 0);
  }

  /** The value that the command resolved with, parsed again for each reader, because a function may change it. */
  get value(): unknown {
    const event = this.#text === undefined ? this.event : (parseStored(this.#text) as JournalEntry);
    return "value" in event ? event.value : undefined;
  }
}

const EMPTY_VALUE = {};

/** Drops the fields that the record holds already, because thousands of promises may be in memory. */
const withoutContent = (promise: PromiseRecord): PromiseRecord => ({
  ...promise,
  param: EMPTY_VALUE,
  tags: EMPTY_VALUE,
});

/**
 * How many records may be on their way to the server at once when `acknowledged` are stored. A gap before a stored
 * record is never longer than that, so a reader knows when it has read the last one.
 */
export const maxUnderWay = (acknowledged: number): number => Math.min(16, acknowledged + 1);

/** The journal of a job, as far as a worker knows it. */
export class Journal {
  readonly events: JournalRecord[] = [];
  /** The version of the job's task under which the journal was last known to be complete. */
  version = 0;
  /** The run of the job whose records these are; undefined for the first. */
  readonly run: Run | undefined;

  constructor(run?: Run) {
    this.run = run;
    this.storedBytes = run?.storedBytes ?? 0;
    this.outsideBytes = run?.outsideBytes ?? 0;
    this.newestMark = run?.newestMark ?? 0;
  }

  readonly #pending = new Map<string, JournalRecord>();
  readonly #settledPromises = new Map<string, PromiseRecord>();

  get last(): number {
    return this.events.at(-1)?.n ?? 0;
  }

  /** The paths of the calls that the function gave up, and whose outputs are written nevertheless. */
  readonly outputs = new Set<string>();

  /** Roughly how much memory it takes, in bytes. */
  size = 0;

  /** The bytes stored for the job and for its child jobs that have ended. */
  storedBytes = 0;

  /** The bytes stored outside of its promises. They count towards the caller's limit, not towards the job's own. */
  outsideBytes = 0;

  /** The newest mark of these bytes: see `size.ts`. */
  newestMark = 0;

  add(promise: PromiseRecord, n: number): JournalRecord | undefined {
    try {
      const record = new JournalRecord(n, promise);
      this.events.push(record);
      if (promise.state === "pending") this.#pending.set(promise.id, record);
      this.size += record.size;
      this.storedBytes += record.storedBytes;
      if ("outsideBytes" in record.event) this.outsideBytes += record.event.outsideBytes ?? 0;
      return record;
    } catch {
      return undefined;
    }
  }

  /** Notes a settled promise, of this job or another. It never changes again, so it is not read again. */
  noteSettled(promise: PromiseRecord): void {
    const settled = withoutContent(promise);
    const own = this.#pending.get(promise.id);
    if (own) {
      own.promise = settled;
      this.storedBytes += bytesIn(promise.value);
    } else if (!this.#settledPromises.has(promise.id)) {
      this.#settledPromises.set(promise.id, settled);
      // A job that a caller started counts by itself, and a shared job counts for nobody.
      if (!(RESERVATION_TAG in promise.tags || STARTER_TAG in promise.tags)) this.storedBytes += sizeOf(promise);
    }
    this.#pending.delete(promise.id);
    this.size += (own ? 0 : 500) + (promise.value.data?.length ?? 0);
  }

  /** The names of the jobs that its records started. */
  get startedJobs(): string[] {
    return this.events.flatMap(({ event, value }) =>
      event.kind === "start" && typeof value === "string" ? [value] : [],
    );
  }

  /**
   * The jobs that end with this one, in the order of their starts: those of earlier runs, those that its records started, and those
   * that a lost worker may have started.
   */
  get children(): string[] {
    const names = new Map<string, string>();
    for (const { event, value } of this.events) {
      if (event.kind === "begin" && event.of === "start") names.set(event.op, event.child);
      else if (event.kind === "start" && names.has(event.op) && typeof value === "string") names.set(event.op, value);
    }
    return [...(this.run?.children ?? []), ...names.values()];
  }

  /** The promise of another job, if it is known to have settled. */
  settledElsewhere(id: string): PromiseRecord | undefined {
    return this.#settledPromises.get(id);
  }

  /** Reads the records that are not known yet, several at a time. */
  async load(run: string, get: (id: string, n: number) => Promise<PromiseRecord | undefined>): Promise<void> {
    await readFrom((n) => get(journalEntryId(run, n), n), this.last + 1, {
      // Three reads suffice for a job that has slept once.
      batch: (missing, read) => (read === 0 ? 3 : missing === 0 ? 32 : maxUnderWay(this.events.length) - missing),
      onEntry: (record, n) => this.add(record, n),
    });
  }
}
