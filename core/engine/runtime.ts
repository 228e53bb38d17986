/** What a pass over a job works with, and how it ends. */

import type { Context, Log, Metrics, Question } from "../definitions/context.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { Clock } from "./clock.ts";
import type { JournalRecord } from "./journal.ts";
import type { ExecutionState } from "./state.ts";

/** When a promise that is created settles: it has, it does at `due` (milliseconds since the epoch), or somebody does it. */
export type When = "resolved" | { due: number } | "open";

/** What a pass may ask of the server, under the lease on the job's task. */
export interface Lease {
  /** The id of the job's promise. */
  readonly id: string;
  /** Which lease on the task it is. Counted from 1, and never twice: after the death of a worker it is another. */
  readonly version: number;
  /** Creates a promise of the job, or finds it. @throws {LeaseLost} */
  create(id: string, param: unknown, when: When): Promise<PromiseRecord>;
  get(id: string): Promise<PromiseRecord | undefined>;
  /** The promise, and from now on news of it, where news can come; `fresh`: as the server has it now. */
  watch(id: string, fresh: boolean): Promise<PromiseRecord | undefined>;
  /** Suspends the task until one of the promises settles. False when one has already. @throws {LeaseLost} */
  suspend(ids: readonly string[]): Promise<boolean>;
  /** Called when there is news of a promise that is watched, with the promise where the news holds it. */
  onNews: (promise?: PromiseRecord) => void;
}

/** The reason of the signal that a job is aborted with whose promise is settled, by its cancellation or by another worker. */
export const SETTLED = "it has been settled meanwhile";

/** The task is no longer this worker's, or the server cannot be reached for as long as the lease lasts. */
export class LeaseLost extends Error {
  override name = "LeaseLost";
}

/** How many attempts may be under way at once in all of a deployment, and how long one may take in milliseconds. */
export interface Limit {
  name: string;
  most: number;
  time: number;
}

/** The job, and what its function may use. */
export interface Runtime {
  jobName: string;
  /** The key of the caller for whom it was started; empty where callers are not told apart. */
  owner?: string;
  /** Milliseconds since the epoch. */
  deadline: number;
  env: unknown;
  log: Log;
  metrics: Metrics;
  /** Aborted when the job is no longer to be run here. */
  signal: AbortSignal;
  /** Starts another job for the caller of this one, or finds it; resolves with its name. */
  start(job: { kind: string }, args: unknown): Promise<string>;
  /** The id of the promise of another job of this job's caller; undefined when it cannot be one. */
  promiseOf(jobName: string): string | undefined;
  /** The id of the promise with which the job asked a question before there were records; for a job from then. */
  askedBefore?(question: Question): Promise<string | undefined>;
  /** Outcomes of the steps of an earlier attempt at this job, by the calls that they are of. */
  memo?: ReadonlyMap<string, JournalRecord>;
  /** Waits until one more attempt may be under way; resolves with what is called when it is over. Default: at once. */
  limit?(limit: Limit, signal: AbortSignal): Promise<() => void>;
  /** Awaited before each attempt: what it has waited for may have taken longer than the lease. @throws {LeaseLost} */
  beforeAttempt?(): Promise<void>;
  /** Default: the machine's. */
  clock?: Clock;
  /** Told what the job is doing, whenever it may have changed. */
  onState?(state: ExecutionState): void;
  /** Awaited before the job is suspended: what somebody has to know of it is to be told by then. */
  beforeSleep?(): Promise<void>;
  /** Told of each attempt that failed. */
  onFailure?(error: unknown, about: { step: string; attempt: number; reason: string; retry_in_ms?: number }): void;
  /** Runs one attempt of a step: for traces, and so that what it leaves behind harms nobody else. */
  trace?<T>(name: string, attempt: number, run: () => Promise<T>): Promise<T>;
}

/** How a pass ended. */
export type ExecutionEnd =
  | { kind: "complete"; value: unknown }
  | { kind: "failed"; error: unknown }
  | { kind: "asleep" }
  /** The code does not fit the records. */
  | { kind: "blocked"; reason: string };

export type Runnable = (ctx: Context<never>, args: never) => Promise<unknown>;
