/** The lease on a job's task, in the server's protocol. */
import { childOf, encodeValue } from "../../resonate/codec.ts";
import type { AcquiredTask, PromiseRecord, TaskRecord } from "../../resonate/connection/protocol.ts";
import { RULES_OF_0_9, timerTags } from "../../resonate/connection/server-rules.ts";
import { isChildOf, leaseWakeupId, runId, storedMarkId } from "../../resonate/ids.ts";
import { bytesIn, markOf, marksTo, STORED_HEADER } from "../../resonate/size.ts";
import { type Clock, machineClock } from "../clock.ts";
import { lateOutcomeOf } from "../guard/seeded.ts";
import type { Lease, When } from "../job-lease.ts";
import { LeaseLost } from "../job-lease.ts";
import type { Journal, JournalEntry } from "../journal.ts";
import type { StepFeature } from "../step-feature.ts";
import { layersOf, type StepLayers } from "../step-layers.ts";

/** Sends one request, and repeats it while the server is unreachable, for as long as the lease may last. */
export type Send = (kind: string, data: object) => Promise<{ status: number; data: unknown }>;

/** A task that this worker has a lease on, with its promise and the records that the server sent along. */
export interface LeasedTask extends Partial<Pick<AcquiredTask, "preload" | "records">> {
  task: Pick<TaskRecord, "id" | "version">;
  promise: PromiseRecord;
  /** The id of the job that the task cleans up after: its records are written under this task. */
  cleansUp?: string;
}

/** The current run of a job, and its bytes, without those of its files, and of its files, with their newest mark: see `size.ts`. */
type JournalCounts = Pick<Journal, "storedBytes" | "outsideBytes" | "newestMark" | "run">;

/**
 * Reads a promise and subscribes to news of it. News comes without the promise if its settlement may have been missed: then it has
 * to be read.
 */
export type Watch = (
  id: string,
  fresh: boolean,
  onNews: (promise?: PromiseRecord) => void,
) => Promise<PromiseRecord | undefined>;

/**
 * Servers after 0.9.8 refuse to suspend a task on promises of other jobs. Such a task is suspended on a wake-up promise of
 * its own job instead. A worker that hears of one of the others settles the wake-up promise; otherwise it times out after a
 * share of the job's age.
 */
const FIRST_WAKE_UP_MS = 30_000;
const WAKE_UP_SHARE_OF_AGE = 0.1;
const MAX_WAKE_UP_MS = 3_600_000;

/** The time-out of the promise that leaves a step's outcome to the clean-up, in milliseconds. */
const LATE_OUTCOME_TIMEOUT_MS = 60_000;

interface LeaseOptions {
  send: Send;
  watch: Watch;
  clock?: Pick<Clock, "now"> | undefined;
  rules?: typeof RULES_OF_0_9;
  /** What they do around the job's records; the first is outermost. */
  features?: readonly StepFeature[];
}

export class TaskLease implements Lease {
  readonly id: string;
  run: string;
  readonly version: number;
  readonly taskId: string;
  readonly #deadline: number;
  readonly #createdAt: number;
  readonly #send: Send;
  readonly #watch: Watch;
  readonly #now: () => number;
  readonly #rules: typeof RULES_OF_0_9;
  readonly #layers: Pick<StepLayers, "record">;
  /** The promises that came with the task, as they were then. */
  readonly #preloaded: ReadonlyMap<string, PromiseRecord>;
  /** From this number on, all records came with the task. */
  readonly #preloadedFrom: number;
  readonly #watchedIds = new Set<string>();
  /** How many of this lease's wake-up promises have settled. */
  #wakeUps = 0;
  #mayHaveMissed: Promise<boolean> | undefined;
  #journal: JournalCounts = { storedBytes: 0, outsideBytes: 0, newestMark: 0, run: undefined };
  /** The bytes stored for the job, and those of its files, including what this lease has written. */
  #storedBytes = 0;
  #outsideBytes = 0;
  onNews: (promise?: PromiseRecord) => void = () => {};
  /** One function for all promises and reads, because a watcher keeps one listener of each job. */
  readonly #forwardNews = (promise?: PromiseRecord) => this.onNews(promise);

  constructor(
    { task, promise, cleansUp, preload = [], records }: LeasedTask,
    { send, watch, clock = machineClock, rules = { ...RULES_OF_0_9 }, features = [] }: LeaseOptions,
  ) {
    this.id = cleansUp ?? task.id;
    this.run = this.id;
    this.taskId = task.id;
    this.version = task.version;
    this.#deadline = promise.timeoutAt;
    this.#createdAt = promise.createdAt;
    this.#send = send;
    this.#watch = watch;
    this.#now = clock.now;
    this.#rules = rules;
    this.#layers = layersOf(features);
    this.#preloaded = new Map(preload.map((each) => [each.id, each]));
    this.#preloadedFrom = records || Number.POSITIVE_INFINITY;
  }

  /** Writes the records of this journal's run, and continues its counts. */
  set journal(journal: JournalCounts) {
    this.#journal = journal;
    if (journal.run) this.run = runId(this.id, journal.run.n);
    this.#storedBytes = journal.storedBytes;
    this.#outsideBytes = journal.outsideBytes;
  }

  async create(id: string, param: unknown, when: When, outsideBytes = 0): Promise<PromiseRecord> {
    const { timeoutAt, isTimer } = this.#timeOf(when);
    const action = childOf(id, timeoutAt, { param, ...(isTimer && { tags: { "resonate:timer": "true" } }) });
    const bytes = bytesIn(action.data.param);
    const run = async () => {
      this.#storedBytes += bytes;
      this.#outsideBytes += outsideBytes;
      if (when !== "resolved" && (await this.#armsTargetsOnly())) Object.assign(action.data.tags, timerTags(timeoutAt));
      const mark = markOf(this.#storedBytes + this.#outsideBytes);
      const isMarked = mark <= this.#journal.newestMark;
      const [promise] = await Promise.all([this.#fenced(action), isMarked || this.#mark(mark)]);
      return promise;
    };
    return this.#layers.record({ bytes, storedBytes: this.#storedBytes, run });
  }

  /** Marks how much the job has stored, for those who need to know before this worker reports it at the job's end. */
  async #mark(n: number): Promise<void> {
    const { newestMark } = this.#journal;
    this.#journal.newestMark = n;
    const { timeoutAt } = this.#timeOf("resolved");
    const tags = { "resonate:timer": "true" };
    try {
      await Promise.all(
        marksTo(n, newestMark).map((each) => this.#fenced(childOf(storedMarkId(this.id, each), timeoutAt, { tags }))),
      );
    } catch (error) {
      this.#journal.newestMark = newestMark;
      throw error;
    }
  }

  async #fenced(action: ReturnType<typeof childOf>): Promise<PromiseRecord> {
    const answer = (await this.#ask("task.fence", { action })) as { action: { data: { promise: PromiseRecord } } };
    return answer.action.data.promise;
  }

  #timeOf(when: When): { timeoutAt: number; isTimer: boolean } {
    // A timer whose time has passed is resolved when it is created: one request in place of two.
    if (when === "resolved") return { timeoutAt: this.#now() - 1, isTimer: true };
    if ("until" in when) return { timeoutAt: Math.min(when.until, this.#deadline), isTimer: false };
    return { timeoutAt: when.due, isTimer: true };
  }

  async leave(path: string, entry: JournalEntry | undefined): Promise<void> {
    if ((await this.get(this.id))?.state !== "rejected_canceled") return;
    const id = lateOutcomeOf(this.run, path);
    const { kind, data } = childOf(id, this.#now() + LATE_OUTCOME_TIMEOUT_MS);
    await this.#send(kind, data);
    await this.#send("promise.settle", { id, state: "resolved", value: encodeValue(entry) });
  }

  /** The job's record with this number, as it was when the task was acquired. */
  async record(id: string, n: number): Promise<PromiseRecord | undefined> {
    return n < this.#preloadedFrom ? this.get(id) : this.#preloaded.get(id);
  }

  async get(id: string): Promise<PromiseRecord | undefined> {
    const preloaded = this.#preloaded.get(id);
    if (preloaded && preloaded.state !== "pending") return preloaded;
    const { status, data } = await this.#send("promise.get", { id });
    if (status === 404) return undefined;
    if (status !== 200) throw lossOf(status, "promise.get");
    return (data as { promise: PromiseRecord }).promise;
  }

  async watch(id: string, fresh: boolean): Promise<PromiseRecord | undefined> {
    this.#mayHaveMissed ??= this.#wasTimedOut();
    const isFirst = !this.#watchedIds.has(id);
    this.#watchedIds.add(id);
    const isFresh = fresh || (isFirst && (await this.#mayHaveMissed));
    return this.#watch(id, isFresh, this.#forwardNews);
  }

  /** Whether the last wake-up promise ended by itself: then news of any awaited promise may have been missed. */
  async #wasTimedOut(): Promise<boolean> {
    if (this.version < 2 || !this.#rules.refusesOthers) return false;
    // If there were several, the first timed out.
    const promise = await this.get(leaseWakeupId(this.taskId, this.version - 1));
    return promise !== undefined && promise.value.data === undefined;
  }

  async suspend(ids: readonly string[]): Promise<boolean> {
    const others = ids.filter((id) => !isChildOf(this.id, id));
    if (others.length === 0 || !this.#rules.refusesOthers) {
      const outcome = await this.#suspend(ids, others);
      if (outcome !== "refused") return outcome === "asleep";
      this.#rules.refusesOthers = true;
    }
    const id = await this.#openWakeUp();
    const own = ids.filter((each) => !others.includes(each));
    if ((await this.#suspend([...own, id], [])) !== "asleep") return false;
    const wake = (promise?: PromiseRecord) => {
      // Waking all such jobs whenever a connection is replaced would cost more than the time until they wake by themselves.
      if (!promise) return;
      // If this request fails, the promise still times out by itself.
      this.#send("promise.settle", { id, state: "resolved", value: encodeValue("settled") }).catch(() => {});
    };
    for (const other of others) {
      const promise = await this.#watch(other, false, wake).catch(() => undefined);
      if (promise && promise.state !== "pending") {
        wake(promise);
        break;
      }
    }
    return true;
  }

  /**
   * Creates this lease's wake-up promise, or finds it. One that has settled would end each suspension at once: it may have timed
   * out while the job went on, or when it was created, if the server's clock is ahead. The next is due after twice the rest.
   */
  async #openWakeUp(): Promise<string> {
    const now = this.#now();
    const age = now - this.#createdAt;
    let rest = Math.min(Math.max(FIRST_WAKE_UP_MS, age * WAKE_UP_SHARE_OF_AGE), MAX_WAKE_UP_MS);
    for (; ; rest *= 2) {
      const id = leaseWakeupId(this.taskId, this.version, this.#wakeUps);
      const { state } = await this.create(id, undefined, { due: Math.ceil(now + rest) });
      if (state === "pending") return id;
      this.#wakeUps += 1;
    }
  }

  async #suspend(ids: readonly string[], others: readonly string[]): Promise<"asleep" | "overtaken" | "refused"> {
    const actions = ids.map((awaited) => ({
      kind: "promise.register_callback",
      data: { awaiter: this.taskId, awaited },
    }));
    try {
      return (await this.#ask("task.suspend", { actions })) === undefined ? "overtaken" : "asleep";
    } catch (error) {
      const { status } = (error as { cause?: { status?: number } }).cause ?? {};
      if (others.length > 0 && status === 400) return "refused";
      // A promise of another job is gone: the execution finds out which, and its call fails.
      if (status === 422 && (await this.#isGone(others))) return "overtaken";
      throw error;
    }
  }

  async #isGone(ids: readonly string[]): Promise<boolean> {
    for (const id of ids) if ((await this.get(id)) === undefined) return true;
    return false;
  }

  async #armsTargetsOnly(): Promise<boolean> {
    return this.#rules.armsTargetsOnly().catch((error) => {
      const message = `the server did not report its rules: ${(error as Error).message}`;
      throw new LeaseLost(message, { reason: "unreachable", cause: error });
    });
  }

  /** Ends the job; `stored`: its size besides its arguments and this value, in bytes. @throws {LeaseLost} */
  async fulfill(state: "resolved" | "rejected", value: unknown, storedBytes?: number): Promise<void> {
    const headers: Record<string, string> = storedBytes === undefined ? {} : { [STORED_HEADER]: String(storedBytes) };
    const data = { id: this.taskId, state, value: { ...encodeValue(value), headers } };
    await this.#ask("task.fulfill", { action: { kind: "promise.settle", data } });
  }

  /** Makes a request under the lease; undefined for a suspension that came after a promise had settled. */
  async #ask(kind: string, request: object): Promise<unknown> {
    const { status, data } = await this.#send(kind, { id: this.taskId, version: this.version, ...request });
    if (status === 300) return undefined;
    if (status === 200) return data ?? {};
    throw lossOf(status, kind);
  }
}

/** The error of an answer by which the server says that the task is not this worker's any more. */
const lossOf = (status: number, kind: string) =>
  new LeaseLost(`the server answered ${status} to ${kind}`, { reason: "taken", cause: { status } });
