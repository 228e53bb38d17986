/** What an execution uses, and its possible ends. */
import type { Budgets, Context, ErrorClass, Log, Metrics, ChildJobOptions } from "../author/context.ts";
import type { EventDefinition } from "../author/event.ts";
import type { Clock } from "./clock.ts";
import type { JournalEntry } from "./journal.ts";
import type { ExecutionState, OutputCounts } from "./state.ts";
import type { JobOfStep, StepFeature } from "./step-feature.ts";

/** The job, and the services that its function may use. */
export interface Runtime extends JobOfStep {
  /** Returns the arguments of the next run as they are stored. @throws {Error} if they do not fit the definition */
  nextArgs?(args: unknown): unknown;
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
  start(job: { kind: string }, args: unknown, options: ChildStart): Promise<string>;
  /** Cancels a job that this one started to end with it. `name`: as {@link ChildStart.begin} got it, or as `start` returned it. */
  endChild(name: string): Promise<void>;
  /** Cancels another job that this one started, unless other callers have started it too. */
  cancel(jobName: string): Promise<void>;
  /** The address at which an outside system settles a promise of this job; undefined where the worker can make none. */
  callbackUrl?(promiseId: string): string;
  /**
   * Only in the clean-up of a cancelled job: when the job was cancelled, and the job's own deadline, in milliseconds
   * since the epoch. `Runtime.deadline` is then that of the clean-up.
   */
  cancelled?: { at: number; deadline: number };
  /** Until when the function may clean up after its deadline; undefined if it does not hear of its deadline. */
  cleanupUntil?: number;
  budget?: Budgets | undefined;
  events?: readonly EventDefinition[] | undefined;
  /** What features do around its steps; the first is outermost. */
  steps: readonly StepFeature[];
  /** The classes of errors that keep their class when a step throws them. */
  errors?: readonly ErrorClass[] | undefined;
  /** Default: the machine's. */
  clock?: Clock;
  /** Called whenever the state of the job may have changed. */
  onState?(state: ExecutionState): void;
  /** Awaited before the job is suspended, so that its state can be written first. `record` writes a record to its journal. */
  beforeSleep?(record: (entry: JournalEntry) => Promise<unknown>): Promise<void>;
  /** Called for each attempt at a step that failed; `retryInMs`: the pause before the next, if there is one. */
  onFailedAttempt?(
    error: unknown,
    failed: { step: string; attempt: number; reason: string; retryInMs: number | undefined },
  ): void;
  /** Called for each step that the function calls, in replays as well; returns an objection to the step, in words. */
  onStep?(path: string, fn: object): string | undefined;
  /** Whether a step that nothing awaits is refused; set in tests. */
  awaitsSteps?: boolean;
  /** How many calls of `ctx` a run may make before the next is refused as an endless loop; set in tests. */
  maxCalls?: number;
}

/** How another job is started. */
export interface ChildStart extends ChildJobOptions {
  /**
   * Records that a job of this name, perhaps a later generation of it, is about to be started that ends with this one.
   *
   * @throws {DOMException} named `AbortError`, if the start is given up
   * @throws {LeaseLost}
   */
  begin(name: string): Promise<void>;
}

export type ExecutionEnd =
  | { kind: "complete"; value: unknown }
  | { kind: "failed"; error: unknown }
  | { kind: "asleep" }
  /** The function goes on in another run, with these arguments. */
  | { kind: "continued"; args: unknown; outputCounts: OutputCounts }
  /** The code does not fit the journal. */
  | { kind: "blocked"; reason: string };

/** How the executions of a task end. A continued job goes on in the same task, so that is no end. */
export type JobEnd = Exclude<ExecutionEnd, { kind: "continued" }>;

export type Runnable = (ctx: Context<never>, args: never) => Promise<unknown>;
