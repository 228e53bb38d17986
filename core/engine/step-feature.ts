/** The seam of steps: what a feature does around the work on a step, around one attempt at it, and around its records. */
import type { Around } from "../around.ts";
import { NonRetryableError, type Retry, type Step, type StepOptions } from "../author/context.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { Clock } from "./clock.ts";
import type { Lease } from "./job-lease.ts";
import type { Run } from "./state.ts";

/** The job that a step belongs to. Features add what they need of it by declaration merging. */
export interface JobOfStep {
  jobName: string;
  /** The key of the caller who started the job; empty without authentication. */
  owner?: string;
  /** The number of this run of the job, and the state that earlier runs handed to it; undefined for the first. */
  run?: Pick<Run, "n" | "before"> | undefined;
  /** The id of the promise of another job of the same caller; undefined when it cannot be one. */
  promiseOf(jobName: string): string | undefined;
}

/** A step without an outcome, or another call that is made like a step: the start of a job, or a partial result. */
export interface StepWork {
  readonly kind: "step" | "start" | "emit";
  /** The names of the contexts around the call and its own name. No other call of the run has the same path. */
  readonly path: string;
  readonly options: StepOptions;
  /** When an earlier execution recorded that its attempt begins ({@link Attempt.begin}), in milliseconds since the epoch. */
  readonly begunAt: number | undefined;
  readonly job: JobOfStep;
  /** How the step is retried, as its options say. A feature may change it. */
  retry: Retry | false | undefined;
}

/** How a step, or one attempt at it, has ended. */
export type StepOutcome = StepResult | StepFailure;

export interface StepResult {
  value: unknown;
  /** See {@link Attempt.outsideBytes}. */
  outsideBytes?: number;
}

export interface StepFailure {
  error: unknown;
  /** The number of the attempt that failed; undefined if the step failed without one. */
  attempt?: number;
  /** After how many milliseconds the step is tried again; undefined if it is not. */
  retryInMs?: number | undefined;
}

/** One attempt at a step, or one check of an `until`. */
export interface Attempt {
  readonly kind: StepWork["kind"] | "until";
  readonly path: string;
  /** The function that is called. */
  readonly fn: object;
  /** Those of the step; a check has none. */
  readonly options: StepOptions;
  /** What the function is handed. A feature adds what it implements before the function is called. */
  readonly step: { -readonly [Member in keyof Step]: Step[Member] };
  readonly job: JobOfStep;
  readonly lease: Lease;
  readonly clock: Clock;
  /** How long the function may take from when it is called; undefined: until the job's deadline. A feature may change it. */
  timeoutMs: number | undefined;
  /** How much it stores with its value outside of the job's promises. A feature adds to it. */
  outsideBytes: number;
  /**
   * Records that the attempt is about to have an effect. Should its worker die, the next one finds {@link StepWork.begunAt}.
   *
   * @throws {LeaseLost}
   */
  begin(): Promise<void>;
  /** Has the durable function run again from its records before the job is suspended or ends, and asks for an objection then. */
  verify(objection: Objection): void;
}

/** The same call as that of an attempt, as the durable function makes it when it runs again from its records. */
export interface RepeatedCall {
  readonly fn: object;
  /** ` at file:line` of the author's code; empty if the stack does not tell. */
  readonly line: string;
  /** Whether the durable function ran as far as before. Otherwise it did something else on the way. */
  readonly isComplete: boolean;
}

/** What is wrong with an attempt, in words, seen when the durable function has run again; undefined if nothing is. */
export type Objection = (again: RepeatedCall) => string | undefined;

/** A promise of the job that is about to be created: a record of its journal, an output, a part of a large value. */
export interface NewRecord {
  /** The size of its content. */
  readonly bytes: number;
  /** How much the job has stored before. */
  readonly storedBytes: number;
}

/** Thrown by {@link StepFeature.record}: the value is not stored, and the call that it comes from fails with this error. */
export class RecordRefused extends NonRetryableError {}

export interface StepFeature {
  /** The options by which a step asks for this feature. Absent: it acts on every step, and on the checks of an `until`. */
  readonly stepOptions?: readonly (keyof StepOptions)[];
  /**
   * Around the work of one execution on a step that has no outcome yet. Resolves with the outcome, which is then recorded;
   * undefined if there is none, because the execution ends or the job's deadline has come.
   */
  step?: Around<StepWork, StepOutcome | undefined>;
  /** Around one attempt. Resolves with the value of the function. */
  attempt?: Around<Attempt, unknown>;
  /** Around the creation of a promise of the job. @throws {RecordRefused} */
  record?: Around<NewRecord, PromiseRecord>;
  /** How much the job must have stored before `record` acts. Default: 0. */
  readonly recordFromBytes?: number;
}
