import type { z } from "zod";

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
}

export function defineJob<Args>(job: Job<Args>): Job<Args> {
  return job;
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
