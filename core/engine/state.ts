import type { Question } from "../author/context.ts";

/** The current state of a job, for its viewers. */
export interface ExecutionState {
  /** Steps that run or wait for their next attempt: since when, the last attempt's error, and when the next is due. */
  steps: { name: string; attempt: number; since: number; error?: string | undefined; next?: number | undefined }[];
  /** The end of the sleep that ends first, in milliseconds since the epoch. */
  sleepingUntil?: number;
  /** How many other jobs it waits for. */
  awaiting: number;
  callbacks: string[];
  questions: { key: string; promiseId: string; question: Question }[];
  /** How many partial results it has emitted. */
  emitted?: number | undefined;
  /** The amount spent and the limit of each budget. */
  spent?: Record<string, { spent: number; limit: number }> | undefined;
  events?: number | undefined;
  progress?: Progress | undefined;
  /** The number of the job's run, if it is not the first. */
  run?: number | undefined;
}

export interface Progress {
  done?: number;
  total?: number;
  message?: string;
}

/** The state that a run hands to the next. */
export interface OutputCounts {
  /** How many partial results and events were emitted, and how many of them are events. */
  emitted: number;
  events: number;
  /** The amount spent and the limit of each budget. */
  spent?: Record<string, { spent: number; limit: number }> | undefined;
  progress?: Progress | undefined;
}

/** One of the runs of a job: see `runs.ts`. */
export interface Run {
  /** Counted from 1. */
  n: number;
  args: unknown;
  seed: string;
  /** By the server's clock, in milliseconds since the epoch. */
  startedAt: number;
  /** The version of the definition with which it began. */
  version: number;
  /** The version of the job's task under which it began. */
  v: number;
  before: OutputCounts;
  /** The bytes that earlier runs have stored, and those that this one began with. */
  storedBytes: number;
  outsideBytes: number;
  /** The newest mark of these bytes: see `store/size.ts`. */
  newestMark: number;
  /** Jobs that earlier runs started and did not await: they end together with this run's. */
  children: string[];
}
