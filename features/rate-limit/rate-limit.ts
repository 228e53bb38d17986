/** How much a caller may ask for in a minute. Requests are weighed by what they touch: a look at 100 jobs counts as 100. */
import { type LimitReached, type Middleware, ToolError } from "../../core/tools/index.ts";
import {
  Counts,
  limitedResponse,
  Meter,
  PERIOD_SECONDS,
  type RateLimit,
  tooManyRequests,
} from "../../functions/http/limits.ts";

export interface RateLimiterBinding {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/**
 * Cloudflare's rate limiter if it is bound, which counts for a whole location; otherwise a count of this isolate.
 * Undefined when there is no limit. The binding takes no weight, so it is asked once for each unit. All these calls run at once:
 * it counts on the machine that asks.
 */
export function createRateLimit(limiter: RateLimiterBinding | undefined, max: number): RateLimit | undefined {
  if (limiter) {
    return async (key, { weight, of = weight }) => {
      const outcomes = await Promise.all(Array.from({ length: weight }, () => limiter.limit({ key })));
      if (outcomes.every(({ success }) => success)) return undefined;
      // The binding does not tell its limit.
      return tooManyRequests(
        "as many as this server allows",
        of,
        PERIOD_SECONDS,
        " If it is refused alone, ask for less at once.",
      );
    };
  }
  if (max === 0) return undefined;
  const counts = new Counts();
  return async (key, { weight, of = weight, isDone }) => {
    if (counts.add(key, weight, isDone ? undefined : max) && counts.of(key) <= max) return undefined;
    return of > max && !isDone ? tooHeavy(max, of) : tooManyRequests(String(max), of, counts.secondsLeft);
  };
}

/** For a request that exceeds the limit by itself. */
const tooHeavy = (max: number, weight: number): LimitReached => ({
  message: `Nothing was done: this request counts as ${weight}, for what it touches, and a caller may make ${max} in ${PERIOD_SECONDS} seconds. Trying again does not help. Ask for at most ${max} at once: for fewer jobs, or for a long range in several shorter ones.`,
});

/** Charges callers for their requests. */
export const limitRate = (limit: RateLimit): Middleware =>
  async function limitRateOf(c, next) {
    const { limitKey, requester, bounds = [] } = c.var;
    const key = limitKey();
    // The request itself, before its body is read; the rest of its weight is charged once it is known.
    const limitReached = await limit(key, { weight: 1 });
    if (limitReached) return limitedResponse(limitReached);
    const chargeStarts = async (count: number) => {
      const tooMany = await limit(key, { weight: count - 1, of: count });
      if (tooMany) throw new ToolError(tooMany.message);
    };
    c.set("requester", { ...requester, chargeStarts });
    c.set("bounds", [...bounds, new Meter(limit, key, 1)]);
    return next();
  };
