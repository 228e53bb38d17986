/** What an execution works with, and how it ends. */
import type { Budgets, Context, ErrorClass, Log, Metrics, Step } from "../definitions/context.ts";
import type { EventDefinition } from "../definitions/event.ts";
import type { PromiseRecord } from "../store/connection/protocol.ts";
import type { Clock } from "./clock.ts";
import type { JournalEntry, JournalRecord } from "./journal.ts";
import type { Carried, ExecutionState, Run } from "./state.ts";

/** When a new promise settles: at once, at `due` (milliseconds since the epoch), or when somebody settles it (`until` then). */
export type When = "resolved" | { due: number } | "open" | { until: number };

/** What an execution may ask of the server, under the lease on the job's task. */
export interface Lease {
  readonly id: string;
  /** The id of the run whose records are written: see `runs.ts`. */
  run: string;
  /** The version of the task: counts the leases on it from 1. After the death of a worker it is another. */
  readonly version: number;
  /** @throws {JobFull} where a record of this value is more than the job may still store */
  admit?(value: unknown): void;
  /** Creates a promise of the job, or finds it. @throws {LeaseLost} @throws {JobFull} */
  create(id: string, param: unknown, when: When): Promise<PromiseRecord>;
  get(id: string): Promise<PromiseRecord | undefined>;
  /** Reads a promise and subscribes to news of it, where news can come; `fresh`: as the server has it now. */
  watch(id: string, fresh: boolean): Promise<PromiseRecord | undefined>;
  /**
   * Where the job was cancelled meanwhile, leaves to its clean-up what came of a step that was under way: its record, or
   * nothing, where it was cut off.
   */
  leave?(path: string, entry: JournalEntry | undefined): Promise<void>;
  /** Suspends the task until one of the promises settles. False when one has already. @throws {LeaseLost} */
  suspend(ids: readonly string[]): Promise<boolean>;
  /** Called when a watched promise may have settled, with the promise where the news holds it. */
  onNews: (promise?: PromiseRecord) => void;
}

const leases = new WeakMap<Step, Lease>();

export const noteLease = (step: Step, lease: Lease): void => void leases.set(step, lease);

/** The lease that a step runs under, for helpers which store promises of its job. */
export const leaseOf = (step: Step): Lease | undefined => leases.get(step);

/** The abort reason of a job whose promise was settled by its cancellation or by another worker. */
export const SETTLED = "it has been settled meanwhile";

/** The task is no longer this worker's, or the server was away for as long as the lease lasts. */
export class LeaseLost extends Error {
  override name = "LeaseLost";
}

/**
 * How many attempts may be under way at once in all of a deployment, and how long one may take in milliseconds; or how many
 * may begin within `per` milliseconds.
 */
export type Limit = { name: string; limit: number } & ({ time: number; per?: never } | { per: number; time?: never });

/** One attempt of a step, as far as its files need to know it. */
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

/** What an attempt stores and reads: see {@link Step.file}. */
export interface AttemptFiles extends Pick<Step, "file" | "read"> {
  /** The attempt has succeeded with this value: files that it does not name are removed. */
  keep(value: unknown): Promise<void>;
  /** The attempt has failed. */
  discard(): Promise<void>;
}

/** The job, and what its function may use. */
export interface Runtime {
  jobName: string;
  /** Which of the job's runs this is, and what those before have left to it; undefined for the first. */
  run?: Pick<Run, "n" | "before"> | undefined;
  /** The arguments of a next run, as they are stored. @throws {Error} for others */
  nextArgs?(args: unknown): unknown;
  /** The key of the caller who started the job; empty where callers are not told apart. */
  owner?: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  deadline: number;
  /**
   * What `ctx.random` and `ctx.uuid` are made from. Jobs that earlier releases or other clients have started have none:
   * they are held to the rules of that time, and theirs is made from what is known of the job, and no secret.
   */
  seed?: string | undefined;
  env: unknown;
  log: Log;
  metrics: Metrics;
  /** Aborted when the job must not run here any more. */
  signal: AbortSignal;
  /** Starts another job for the caller of this one, or finds it; resolves with its name. */
  start(job: { kind: string }, args: unknown): Promise<string>;
  /** Cancels another job that this one started, unless others want it too. */
  cancel(jobName: string): Promise<void>;
  /** The address at which an outside system settles a promise of this job; undefined where the worker can make none. */
  callbackUrl?(promiseId: string): string;
  /** The id of the promise of another job of the same caller; undefined when it cannot be one. */
  promiseOf(jobName: string): string | undefined;
  /**
   * Of a cancelled job's clean-up: when the job was cancelled, and the job's own deadline, in milliseconds since the epoch.
   * `deadline` is then the clean-up's.
   */
  cancelled?: { at: number; deadline: number };
  /** Until when the function may clean up after its deadline; undefined where it is not told of that. */
  cleanupUntil?: number;
  /** Outcomes of the steps of an earlier attempt at this job, by their paths. */
  memo?: ReadonlyMap<string, JournalRecord>;
  budget?: Budgets;
  events?: readonly EventDefinition[];
  /** Where steps store files; undefined where nothing stores any. */
  files?(of: OfAttempt): AttemptFiles;
  /** The classes of errors that steps give back as they were thrown. */
  errors?: readonly ErrorClass[];
  /** Waits until one more attempt may be under way; resolves with a function that ends it. Default: at once. */
  limit?(limit: Limit, signal: AbortSignal): Promise<() => void>;
  /** Awaited before each attempt: the wait before it may have outlasted the lease. @throws {LeaseLost} */
  beforeAttempt?(): Promise<void>;
  /** Default: the machine's. */
  clock?: Clock;
  /** Called whenever what the job is doing may have changed. */
  onState?(state: ExecutionState): void;
  /** Awaited before the job is suspended, so that its state can be written first. */
  beforeSleep?(): Promise<void>;
  /** Called for each attempt that failed. */
  onFailure?(error: unknown, about: { step: string; attempt: number; reason: string; retry_in_ms?: number }): void;
  /** Told of each step that the function calls, in replays as well; returns what is wrong with it, in words. */
  onStep?(path: string, fn: object): string | undefined;
  /** Whether a step that nothing awaits is refused, as tests have it. */
  awaitsSteps?: boolean;
  /** How many calls of `ctx` a run may make: one more is refused as a loop without end, as tests have it. */
  mostCalls?: number;
  /** Runs one attempt of a step, with a trace and apart from other jobs. */
  trace?<T>(name: string, attempt: number, run: () => Promise<T>): Promise<T>;
}

export type ExecutionEnd =
  | { kind: "complete"; value: unknown }
  | { kind: "failed"; error: unknown }
  | { kind: "asleep" }
  /** The function goes on in another run, with these arguments. */
  | { kind: "continued"; args: unknown; carried: Carried }
  /** The code does not fit the journal. */
  | { kind: "blocked"; reason: string };

/** How the executions of a job's task end: what continues goes on in the same task. */
export type JobEnd = Exclude<ExecutionEnd, { kind: "continued" }>;

export type Runnable = (ctx: Context<never>, args: never) => Promise<unknown>;
