/** The interfaces that an execution uses, and its possible ends. */
import type { Budgets, Context, ErrorClass, Log, Metrics, Step } from "../author/context.ts";
import type { EventDefinition } from "../author/event.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { Clock } from "./clock.ts";
import type { JournalEntry, JournalRecord } from "./journal.ts";
import type { Carried, ExecutionState, Run } from "./state.ts";

/**
 * When a new promise settles: at once, at `due`, or when somebody settles it, by `until` and the job's deadline at the
 * latest. In milliseconds since the epoch.
 */
export type When = "resolved" | { due: number } | { until: number };

/** The requests that an execution may make of the server, under the lease on the job's task. */
export interface Lease {
  readonly id: string;
  /** The id of the run whose records are written: see `runs.ts`. */
  readonly run: string;
  /** The version of the task: counts the leases on it from 1, so another worker has another version. */
  readonly version: number;
  /** @throws {JobFull} if a record of this value is more than the job may still store */
  checkRoom?(value: unknown): void;
  /** Creates a promise of the job, or finds it. @throws {LeaseLost} @throws {JobFull} */
  create(id: string, param: unknown, when: When): Promise<PromiseRecord>;
  get(id: string): Promise<PromiseRecord | undefined>;
  /** Reads a promise and subscribes to news of it, if news can come; `fresh`: as the server has it now. */
  watch(id: string, fresh: boolean): Promise<PromiseRecord | undefined>;
  /**
   * If the job has been cancelled, leaves the outcome of a step that was under way to the clean-up: its record, or
   * nothing if the step was cut off.
   */
  leave?(path: string, entry: JournalEntry | undefined): Promise<void>;
  /** Suspends the task until one of the promises settles. False if one has settled already. @throws {LeaseLost} */
  suspend(ids: readonly string[]): Promise<boolean>;
  /** Called when a watched promise may have settled, with the promise where the news holds it. */
  onNews: (promise?: PromiseRecord) => void;
}

const leases = new WeakMap<Step, Lease>();

export const noteLease = (step: Step, lease: Lease): void => void leases.set(step, lease);

/** The lease that a step runs under, for helpers which store promises of its job. */
export const leaseOf = (step: Step): Lease | undefined => leases.get(step);

/**
 * Why an execution cannot go on in this worker:
 *
 * - `taken`: the server says that the task is another worker's, or has ended;
 * - `lapsed`: the lease was not renewed in time;
 * - `settled`: the job's promise was settled by its cancellation or by another worker;
 * - `unreachable`: the server did not answer for as long as a lease lasts;
 * - `refused`: the server refuses a request for good, and would refuse it from any worker;
 * - `ended`: this execution has ended already, or is no longer wanted here.
 */
export type LeaseLossReason = "taken" | "lapsed" | "settled" | "unreachable" | "refused" | "ended";

/** This worker must not go on with the task. */
export class LeaseLost extends Error {
  override name = "LeaseLost";
  readonly reason: LeaseLossReason;

  constructor(message: string, { reason, cause }: { reason: LeaseLossReason; cause?: unknown }) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/** Aborts the execution of a job that was settled meanwhile. Shared, because each new error captures a stack. */
export const SETTLED = new LeaseLost("it has been settled meanwhile", { reason: "settled" });

/**
 * How many attempts may be under way at once in the whole deployment, each for up to `time` milliseconds; or how many may
 * begin within `per` milliseconds.
 */
export type Limit = { name: string; limit: number } & ({ time: number; per?: never } | { per: number; time?: never });

/** The facts about an attempt of a step that its files need. */
export interface OfAttempt {
  /** The id of the job's promise, and that of its run. */
  promiseId: string;
  run: string;
  jobName: string;
  step: string;
  /** The version of the job's task, and the number of the attempt. */
  version: number;
  attempt: number;
  signal: AbortSignal;
  promiseOf(jobName: string): string | undefined;
}

/** The files that an attempt stores and reads: see {@link Step.file}. */
export interface AttemptFiles extends Pick<Step, "file" | "read"> {
  /** The attempt has succeeded with this value: files that it does not name are removed. */
  keep(value: unknown): Promise<void>;
  /** The attempt has failed. */
  discard(): Promise<void>;
}

/** The job, and the services that its function may use. */
export interface Runtime {
  jobName: string;
  /** The number of this run of the job, and the state that earlier runs handed to it; undefined for the first. */
  run?: Pick<Run, "n" | "before"> | undefined;
  /** Returns the arguments of the next run as they are stored. @throws {Error} if they do not fit the definition */
  nextArgs?(args: unknown): unknown;
  /** The key of the caller who started the job; empty where callers are not told apart. */
  owner?: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  deadline: number;
  /** The secret from which `ctx.random` and `ctx.uuid` are derived. */
  seed: string;
  env: unknown;
  log: Log;
  metrics: Metrics;
  /** Aborted when the job must not run here any more. */
  signal: AbortSignal;
  /** Starts another job for the caller of this one, or finds it; resolves with its name. */
  start(job: { kind: string }, args: unknown): Promise<string>;
  /** Cancels another job that this one started, unless other callers have started it too. */
  cancel(jobName: string): Promise<void>;
  /** The address at which an outside system settles a promise of this job; undefined where the worker can make none. */
  callbackUrl?(promiseId: string): string;
  /** The id of the promise of another job of the same caller; undefined when it cannot be one. */
  promiseOf(jobName: string): string | undefined;
  /**
   * Only in the clean-up of a cancelled job: when the job was cancelled, and the job's own deadline, in milliseconds
   * since the epoch. `Runtime.deadline` is then that of the clean-up.
   */
  cancelled?: { at: number; deadline: number };
  /** Until when the function may clean up after its deadline; undefined if it is not told of its deadline. */
  cleanupUntil?: number;
  /** Outcomes of the steps of an earlier attempt at this job, by their paths. */
  memo?: ReadonlyMap<string, JournalRecord> | undefined;
  budget?: Budgets | undefined;
  events?: readonly EventDefinition[] | undefined;
  /** Where an attempt of a step stores files. */
  files(of: OfAttempt): AttemptFiles;
  /** The classes of errors that keep their class when a step throws them. */
  errors?: readonly ErrorClass[] | undefined;
  /** Waits until one more attempt may begin; resolves with a function that frees its place. Default: no limits. */
  limit?(limit: Limit, signal: AbortSignal): Promise<() => void>;
  /** Awaited before each attempt, because a wait for a limit may have outlasted the lease. @throws {LeaseLost} */
  beforeAttempt?(): Promise<void>;
  /** Default: the machine's. */
  clock?: Clock;
  /** Called whenever the state of the job may have changed. */
  onState?(state: ExecutionState): void;
  /** Awaited before the job is suspended, so that its state can be written first. `record` writes a record to its journal. */
  beforeSleep?(record: (entry: JournalEntry) => Promise<unknown>): Promise<void>;
  /** Called for each attempt that failed. */
  onFailure?(error: unknown, about: { step: string; attempt: number; reason: string; retry_in_ms?: number }): void;
  /** Called for each step that the function calls, in replays as well; returns an objection to the step, in words. */
  onStep?(path: string, fn: object): string | undefined;
  /** Whether a step that nothing awaits is refused; set in tests. */
  awaitsSteps?: boolean;
  /** How many calls of `ctx` a run may make before the next is refused as an endless loop; set in tests. */
  mostCalls?: number;
  /** Runs one attempt of a step in a trace span; stray errors of its work fail the attempt, and no other job. */
  runAttempt?<T>(name: string, attempt: number, run: () => Promise<T>): Promise<T>;
}

export type ExecutionEnd =
  | { kind: "complete"; value: unknown }
  | { kind: "failed"; error: unknown }
  | { kind: "asleep" }
  /** The function goes on in another run, with these arguments. */
  | { kind: "continued"; args: unknown; carried: Carried }
  /** The code does not fit the journal. */
  | { kind: "blocked"; reason: string };

/** How the executions of a task end. A continued job goes on in the same task, so that is no end. */
export type JobEnd = Exclude<ExecutionEnd, { kind: "continued" }>;

export type Runnable = (ctx: Context<never>, args: never) => Promise<unknown>;
