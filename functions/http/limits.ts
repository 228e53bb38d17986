/** Limits of what callers may ask for in a period, and the words for those who exceed them. */
import type { LimitReached } from "../../core/tools/index.ts";

/** The period of limits, in seconds. */
export const PERIOD_SECONDS = 60;

/** Charges a caller; returns why the request is refused when the limit is exceeded. */
export type RateLimit = (caller: string, charge: Charge) => Promise<LimitReached | undefined>;

interface Charge {
  /** The weight that is counted now. */
  weight: number;
  /** The weight of the whole request. Default: `weight`. */
  of?: number;
  /** Whether the work is done already: it then counts even above the limit. */
  isDone?: boolean;
}

/** Counts by key, forgotten at the end of each period. */
export class Counts {
  readonly #counts = new Map<string, number>();
  #end = 0;

  /** Adds to a count unless the sum would exceed `max`. Returns whether it was added. */
  add(key: string, weight: number, max = Number.POSITIVE_INFINITY): boolean {
    const count = this.of(key) + weight;
    if (count > max) return false;
    this.#counts.set(key, count);
    return true;
  }

  of(key: string): number {
    const now = Date.now();
    if (now >= this.#end) {
      this.#counts.clear();
      this.#end = now + PERIOD_SECONDS * 1_000;
    }
    return this.#counts.get(key) ?? 0;
  }

  /** The seconds until the period ends, at least 1. */
  get secondsLeft(): number {
    return Math.max(1, Math.ceil((this.#end - Date.now()) / 1_000));
  }
}

export function tooManyRequests(max: string, weight: number, seconds: number, advice = ""): LimitReached {
  const counted = weight > 1 ? ` This request counts as ${weight}, for what it touches.${advice}` : "";
  const limit = `a caller may make ${max} in ${PERIOD_SECONDS} seconds`;
  return {
    message: `Nothing was done: too many requests; ${limit}. Try again in ${seconds} seconds.${counted}`,
    seconds,
  };
}

export const limitedResponse = ({ message, seconds }: LimitReached): Response =>
  Response.json(
    { error: "rate_limit_exceeded", error_description: message },
    { status: 429, headers: seconds === undefined ? {} : { "retry-after": String(seconds) } },
  );
