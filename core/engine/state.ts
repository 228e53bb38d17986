import type { Question } from "../definitions/context.ts";

/** What a job is doing now, for those who look at it. */
export interface ExecutionState {
  /** Steps that run or wait for their next attempt: since when, what the last attempt ended with, when the next is due. */
  steps: { name: string; attempt: number; since: number; error?: string; next?: number }[];
  /** The end of the sleep that ends first, in milliseconds since the epoch. */
  sleepingUntil?: number;
  /** How many other jobs it waits for. */
  awaiting: number;
  /** The paths of the callbacks that it waits for. */
  callbacks: string[];
  questions: { key: string; promiseId: string; question: Question }[];
  /** How many partial results it has told. */
  emitted?: number;
  /** What it has spent of its budgets. */
  spent?: Record<string, { spent: number; limit: number }>;
  /** How many events it has told. */
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
