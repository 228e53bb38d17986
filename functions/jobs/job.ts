import type * as z from "zod";

/**
 * One kind of durable work, defined once: the tool that starts it and the durable function that runs it import this.
 *
 * `Args` are the canonical arguments as they are stored in the promise: two requests for the same work have the same
 * `Args`, and so the same name.
 */
export interface Job<Args> {
  /** The name under which the worker registers the durable function. */
  readonly func: string;
  /** Checks stored arguments; the worker applies it before the function sees them. */
  readonly args: z.ZodType<Args>;
  /**
   * The job name: what an agent sees and comes back with. The promise id is the deployment's namespace and this.
   * Never contains `:` (it separates a promise from its children) or `~` (it separates a name from its generation).
   */
  name(args: Args): string;
  /** Whether `name`, without its generation, could have come from this job. */
  owns(name: string): boolean;
  /** When the promise times out, in milliseconds since the epoch, for a job started at `now`. */
  deadline(args: Args, now: number): number;
  /** When it is expected to settle, in milliseconds since the epoch, for a job that knows. */
  expectedAt?(args: Args): number;
  /**
   * Whether callers share the job: its arguments and its result are nobody's secret. A job that is not shared belongs to
   * the caller who started it, and to others it does not exist.
   */
  readonly shared?: boolean;
  /** Whether the function reports progress or asks its caller questions (see `journal.ts`). */
  readonly keepsJournal?: boolean;
}

/** A job of whatever arguments. */
export type AnyJob = Job<unknown>;

export function defineJob<Args>(job: Job<Args>): Job<Args> {
  return job;
}

/** The tag of a job's promise that holds the id of the request that started it, for whoever reads the logs. */
export const REQUEST_TAG = "durable-mcp:request";

/** `timer_tea~3` is the third generation of `timer_tea`; the first carries no suffix. */
export function splitGeneration(name: string): { base: string; generation: number } {
  const match = /^(.*)~([1-9]\d{0,8})$/s.exec(name);
  if (!match?.[1] || match[2] === "1") return { base: name, generation: 1 };
  return { base: match[1], generation: Number(match[2]) };
}

export function withGeneration(base: string, generation: number): string {
  return generation === 1 ? base : `${base}~${generation}`;
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
