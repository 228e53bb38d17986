/** The seam of tasks: what a feature does around the execution of a job in a worker. */

import type { Around, Observer } from "../around.ts";
import type { Implementation } from "../author/implement.ts";
import type { Journal } from "../engine/journal.ts";
import type { LeasedTask, TaskLease } from "../engine/lease/lease.ts";
import type { JobEnd, Runtime } from "../engine/runtime.ts";
import type { ExecutionState, OutputCounts } from "../engine/state.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { FeedEntry } from "./feed/progress-feed.ts";
import type { JobCall } from "./job-call.ts";
import type { LineLog } from "./line-log.ts";

/** The code of a job. */
export interface JobCode {
  implementation: Implementation;
  /** The version of the definition with which the job began. */
  version: number;
}

/** A claimed task. Features add to it by declaration merging. */
export interface JobTask {
  /** The task as it was claimed, with what the server sent along. */
  readonly claim: LeasedTask;
  /** The promise of the job, or of a feature's own task. */
  readonly promise: PromiseRecord;
  readonly call: JobCall;
  /** Undefined for a feature's own task. */
  readonly code: JobCode | undefined;
  /** The kind of job; `unknown` for a feature's own task. */
  readonly kind: string;
  /** The promise id without the namespace: its name in logs. */
  readonly name: string;
  readonly lease: TaskLease;
  log: LineLog;
}

/** What a worker remembers of a job between two executions. Features add to it by declaration merging. */
export interface JobMemory {
  journal: Journal;
}

/** An execution of a job whose journal has been read. Features add to it by declaration merging. */
export interface JobRun extends JobTask {
  readonly code: JobCode;
  /** The arguments of the job's first run. */
  args: unknown;
  readonly memory: JobMemory;
  /** What the function and its steps may use. */
  readonly runtime: Runtime;
  /** Aborts the execution, with a {@link LeaseLost} that says why. */
  readonly stop: AbortController;
  /** The newest state of the job; undefined if there is none. */
  state?: ExecutionState | undefined;
  /** How the job's function ended. */
  end?: JobEnd;
  /**
   * Suspends the job before its function begins, until one of these promises settles. `message` tells those who look at the job
   * why. Resolves with false if one has settled already. @throws {LeaseLost}
   */
  sleep(ids: readonly string[], message: string): Promise<boolean>;
  /** Stores how the job's function ended, or how the job ends without it. @throws {LeaseLost} */
  conclude(end: JobEnd): Promise<Ending>;
}

/**
 * How an execution ended. `asleep`: suspended until an awaited promise settles; `blocked`: suspended until fitting code is back;
 * `left`: left to another worker.
 */
export type Ending = "complete" | "failed" | "asleep" | "blocked" | "left";

/** The next run of a job (`ctx.continueAs`), to which features may add. */
export interface NextRun {
  args: unknown;
  version: number;
  before: OutputCounts;
  /** Jobs that end together with those of the next run. */
  children: string[];
}

/** An event of a worker. */
export type TaskEvent =
  /** The connection over which tasks are dispatched was opened or lost. */
  | { type: "connection"; isOpen: boolean }
  /** The number of tasks that wait for a slot has changed. */
  | { type: "queued"; kind: string; change: number }
  /** The number of tasks that are executed has changed. */
  | { type: "executing"; kind: string; change: number }
  /** A claimed task has no function here, and is released; `isFirst`: for the first time in a while. */
  | { type: "unhandled"; kind: string; name: string; promise: PromiseRecord; isFirst: boolean }
  /** A claimed task was released, because this worker stops. */
  | { type: "released"; kind: string }
  /** A job is executed for the first time, or again. */
  | { type: "started" | "continued"; task: JobTask }
  /** The state of a job may have changed. */
  | { type: "changed"; run: JobRun; state: ExecutionState }
  /** An attempt of a step has failed; without `retryInMs` it is the last. */
  | { type: "attemptFailed"; run: JobRun; step: string; error: unknown; reason: string; retryInMs?: number | undefined }
  /** The function is about to start another job, and has started it. */
  | { type: "startsJob"; run: JobRun }
  | { type: "startedJob"; promise: Pick<PromiseRecord, "id" | "createdAt"> }
  /** The function continues in another run. */
  | { type: "nextRun"; run: JobRun; next: NextRun }
  /** The job is about to be suspended; `record` writes a record to its journal. Awaited. @throws {LeaseLost} */
  | { type: "sleeps"; run: JobRun; record?: Parameters<NonNullable<Runtime["beforeSleep"]>>[0] }
  /** The job has been suspended. */
  | { type: "asleep"; run: JobRun }
  /** No worker can continue the job at present: its code does not fit, or each worker that ran it was lost (`by`). Awaited. */
  | { type: "blocked"; task: JobTask; reason: string; by?: FeedEntry["blocked_by"] }
  /** The job's function has ended, and its outcome is about to be stored. */
  | { type: "ends"; task: JobTask }
  /** The job has ended. */
  | ({ type: "ended"; task: Pick<JobTask, "promise" | "kind" | "name"> } & JobOutcome)
  /** This worker has lost its lease on a task. */
  | { type: "leaseLost"; task: JobTask };

export interface JobOutcome {
  outcome: "complete" | "failed" | "cancelled";
  /** How long the job took from its start. */
  durationMs: number;
  /** Why it failed. */
  reason?: string | undefined;
  /** The stack of the error, for the author of the function. */
  stack?: string | undefined;
}

/** What a feature does around the execution of a task. */
export interface TaskFeature extends Observer<TaskEvent> {
  /** Before the job's journal is read; it may execute the task itself. */
  task?: Around<JobTask, Ending>;
  /** After the journal was read: around the execution of the job's function. */
  run?: Around<JobRun, Ending>;
  /** What it does at an event. Throws only where the event says so. */
  observe?(event: TaskEvent): void | Promise<void>;
}

/** Hands an event to features. Resolves when all have taken it. */
export type Observe = (event: TaskEvent) => Promise<void>;
