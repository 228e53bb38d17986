import type { Question } from "../definitions/context.ts";

/** What a job is doing now, for those who look at it. */
export interface ExecutionState {
  /** Steps that run or wait for their next attempt: since when, what the last attempt ended with, when the next is due. */
  steps: { name: string; attempt: number; since: number; error?: string; next?: number }[];
  /** The end of the sleep that ends first, in milliseconds since the epoch. */
  sleepingUntil?: number;
  /** How many other jobs it waits for. */
  awaiting: number;
  callbacks: string[];
  questions: { key: string; promiseId: string; question: Question }[];
  /** How many partial results it has told. */
  emitted?: number;
  /** Spent of its budgets. */
  spent?: Record<string, { spent: number; limit: number }>;
  events?: number;
  progress?: Progress;
  /** Which of the job's runs this is, where it is not the first. */
  run?: number;
}

export interface Progress {
  done?: number;
  total?: number;
  message?: string;
}

/** What a run leaves to the next. */
export interface Carried {
  /** How many partial results and events were told, and how many of them are events. */
  emitted: number;
  events: number;
  /** What is spent of each budget, and may be. */
  spent?: Record<string, { spent: number; limit: number }>;
  progress?: Progress;
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
  before: Carried;
  /** What earlier runs have stored, and what this one began with, in bytes. */
  stored: number;
  files?: number;
  /** The newest mark that says so; undefined in a run of an earlier release. */
  marked?: number;
  /** Jobs that earlier runs have started and not awaited: they are given up with this one. */
  children: string[];
}
