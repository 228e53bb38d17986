/**
 * How much a caller may ask for in a minute. What counts is what a request touches: a look at a hundred jobs counts as a
 * hundred (`mcp/weight.ts`).
 */
import type { Config } from "../app/config.ts";

/** What the limits are about, in seconds. */
const PERIOD = 60;

/** Counts what a caller asks for; the answer that refuses it when it is too much. */
export type RateLimit = (key: string, charge: Charge) => Promise<Response | undefined>;

export interface Charge {
  /** What is counted now. */
  weight: number;
  /** What the request counts as in all. */
  of: number;
}

/**
 * Cloudflare's rate limiter where it is bound, which counts for a whole location, and otherwise a count that this
 * isolate keeps by itself. Undefined when there is no limit. The bound limiter takes no weight, and so is asked as often
 * as the request weighs, all at once: it counts on the machine that asks.
 */
export function createRateLimit({
  RATE_LIMITER: limiter,
  RATE_LIMIT: most,
}: Pick<Config, "RATE_LIMITER" | "RATE_LIMIT">): RateLimit | undefined {
  if (limiter) {
    return async (key, { weight, of }) => {
      const outcomes = await Promise.all(Array.from({ length: weight }, () => limiter.limit({ key })));
      return outcomes.every(({ success }) => success)
        ? undefined
        : tooManyRequests("as many as this server allows", of);
    };
  }
  if (most === 0) return undefined;
  const counts = new Counts();
  return async (key, { weight, of }) =>
    counts.add(key, weight, most) ? undefined : tooManyRequests(String(most), of, counts.secondsLeft);
}

/** What has been counted by key since the period began. Values only, and forgotten with the period. */
export class Counts {
  readonly #counts = new Map<string, number>();
  #end = 0;

  /** Adds to a count unless it would exceed `most`. Whether it was added. */
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

  /** Until the period ends. */
  get secondsLeft(): number {
    return Math.max(1, Math.ceil((this.#end - Date.now()) / 1_000));
  }
}

/** The answer to one request too many. */
export function tooManyRequests(most: string, weight: number, seconds = PERIOD): Response {
  const counted = weight > 1 ? ` This request counts as ${weight}, for what it touches.` : "";
  const error_description = `Nothing was done: too many requests; a caller may make ${most} in ${PERIOD} seconds. Try again in ${seconds} seconds.${counted}`;
  const headers = { "retry-after": String(seconds) };
  return Response.json({ error: "rate_limit_exceeded", error_description }, { status: 429, headers });
}
