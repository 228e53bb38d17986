/** How much a caller may ask for in a minute. Requests are weighed by what they touch: a look at 100 jobs counts as 100. */

import type { LimitReached } from "../../core/tools/request-scope.ts";
import { clientAddress } from "./client-address.ts";

/** The period of limits, in seconds. */
const PERIOD = 60;

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

export interface RateLimiterBinding {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/**
 * Cloudflare's rate limiter where it is bound, which counts for a whole location; otherwise a count of this isolate.
 * Undefined when there is no limit. The binding takes no weight, so it is asked once for each unit. All these calls run at once:
 * it counts on the machine that asks.
 */
export function createRateLimit(limiter: RateLimiterBinding | undefined, most: number): RateLimit | undefined {
  if (limiter) {
    return async (key, { weight, of = weight }) => {
      const outcomes = await Promise.all(Array.from({ length: weight }, () => limiter.limit({ key })));
      if (outcomes.every(({ success }) => success)) return undefined;
      // The binding does not tell its limit.
      return tooManyRequests(
        "as many as this server allows",
        of,
        PERIOD,
        " If it is refused alone, ask for less at once.",
      );
    };
  }
  if (most === 0) return undefined;
  const counts = new Counts();
  return async (key, { weight, of = weight, isDone }) => {
    if (counts.add(key, weight, isDone ? undefined : most) && counts.of(key) <= most) return undefined;
    return of > most && !isDone ? tooMuch(most, of) : tooManyRequests(String(most), of, counts.secondsLeft);
  };
}

/** How many tries from one address may be refused in a period. After that, further ones are not looked at. */
const MAX_REFUSED = 100;

/**
 * Counts refused tokens and void addresses, by the address that sent them. Where no address is known nothing is counted: all
 * clients would share one count, and a stranger could shut everybody out.
 */
export class RefusedTries {
  readonly #counts = new Counts();

  add(request: Request): void {
    const address = clientAddress(request);
    if (address !== undefined) this.#counts.add(address, 1);
  }

  /** The response to an address from which too many have been refused. */
  tooMany(request: Request): Response | undefined {
    const address = clientAddress(request);
    return address === undefined || this.#counts.of(address) < MAX_REFUSED
      ? undefined
      : limitedResponse(tooManyRequests(`${MAX_REFUSED} refused tokens`, 1, this.#counts.secondsLeft));
  }
}

/** Counts by key, forgotten at the end of each period. */
class Counts {
  readonly #counts = new Map<string, number>();
  #end = 0;

  /** Adds to a count unless the sum would exceed `most`. Returns whether it was added. */
  add(key: string, weight: number, most = Number.POSITIVE_INFINITY): boolean {
    const count = this.of(key) + weight;
    if (count > most) return false;
    this.#counts.set(key, count);
    return true;
  }

  of(key: string): number {
    const now = Date.now();
    if (now >= this.#end) {
      this.#counts.clear();
      this.#end = now + PERIOD * 1_000;
    }
    return this.#counts.get(key) ?? 0;
  }

  /** The seconds until the period ends, at least 1. */
  get secondsLeft(): number {
    return Math.max(1, Math.ceil((this.#end - Date.now()) / 1_000));
  }
}

function tooManyRequests(most: string, weight: number, seconds: number, advice = ""): LimitReached {
  const counted = weight > 1 ? ` This request counts as ${weight}, for what it touches.${advice}` : "";
  const limit = `a caller may make ${most} in ${PERIOD} seconds`;
  return {
    words: `Nothing was done: too many requests; ${limit}. Try again in ${seconds} seconds.${counted}`,
    seconds,
  };
}

/** For a request that exceeds the limit by itself. */
const tooMuch = (most: number, weight: number): LimitReached => ({
  words: `Nothing was done: this request counts as ${weight}, for what it touches, and a caller may make ${most} in ${PERIOD} seconds. Trying again does not help. Ask for at most ${most} at once: for fewer jobs, or for a long range in several shorter ones.`,
});

export const limitedResponse = ({ words, seconds }: LimitReached): Response =>
  Response.json(
    { error: "rate_limit_exceeded", error_description: words },
    { status: 429, headers: seconds === undefined ? {} : { "retry-after": String(seconds) } },
  );
