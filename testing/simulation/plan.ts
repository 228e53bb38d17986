/** The plan of a trial: when its worker dies, and what its job depends on. */
import type { Budgets, ErrorClass, EventDefinition, Question, ChildJobOptions } from "../../core/author/index.ts";
import type { JournalRecord } from "../../core/engine/index.ts";

/** A death of the worker at a request to the server. Requests are counted from 1 over the whole trial. */
export interface Death {
  at: number;
  /**
   * `before` the request arrives, `after` the server has answered it but before the answer arrives, or `alone`: this request gets
   * lost, while the others under way arrive.
   */
  how: "before" | "after" | "alone";
}

export interface Plan {
  deaths: readonly Death[];
  /** Whether the surviving worker continues the job with its memory. Otherwise it has forgotten the job. */
  isWarm: boolean;
  /** Whether the worker waits instead of letting the job sleep, so that it never runs the function again. */
  staysAwake?: boolean;
  /** How long requests take in each direction, in milliseconds. Default: 0. */
  latency?: () => number;
  /** Whether notifications about awaited promises arrive. Default: true. */
  hasNews?: boolean;
  /** Cancels the job `after` so many milliseconds; the worker that runs it notices that after `noticeDelay` milliseconds more. */
  cancel?: { after: number; noticeDelay: number };
}

/** What the job depends on. Times are in milliseconds. */
export interface Dependencies {
  env?: unknown;
  errors?: readonly ErrorClass[] | undefined;
  budget?: Budgets | undefined;
  events?: readonly EventDefinition[] | undefined;
  /** Whether steps wait for more than the worker's clock. Then the clock stands still while they make progress. */
  isReal?: boolean;
  /** How long the job may take. Default: 10 years. */
  deadline?: number;
  /** How many calls of `ctx` a run may make. */
  maxCalls?: number;
  /** The answer to a question, and how long it takes. */
  answer?(name: string, question: Question | undefined): { after: number; answer: unknown } | undefined;
  /** The value sent to a callback, and how long that takes. */
  callback?(path: string): { after: number; value: unknown } | undefined;
  /** See {@link Runtime.nextArgs}. */
  nextArgs?(args: unknown): unknown;
  /** The name of another job that is started. @throws {NonRetryableError} if a worker would not start it */
  nameOf?(job: { kind: string }, args: unknown, options: ChildJobOptions): Promise<string>;
  /** The outcome of another job, and how long the job takes. */
  job?(name: string): { after: number; result?: unknown; error?: Error } | undefined;
  /** The records of the steps that an earlier attempt at the job has finished, by their paths. */
  finishedSteps?: ReadonlyMap<string, JournalRecord>;
  /** Other jobs that exist from the beginning. */
  jobs?: readonly string[];
  /** Creates, for each trial, a function that says what is wrong with a step: see {@link Runtime.onStep}. */
  inputs?(): (path: string, fn: object) => string | undefined;
  onAttempt?(step: string, attempt: number): void;
}
