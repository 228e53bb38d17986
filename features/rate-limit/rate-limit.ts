/** How much a caller may ask for in a minute. Requests are weighed by what they touch: a look at 100 jobs counts as 100. */
import {
  type LimitReached,
  type Middleware,
  type RequestBound,
  type RequestCost,
  type RequestScope,
  ToolError,
} from "../../core/tools/index.ts";
import {
  Counts,
  limitedResponse,
  PERIOD_SECONDS,
  type RateLimit,
  tooManyRequests,
} from "../../functions/http/limits.ts";

/** How many calls to the Resonate server one unit of weight pays for: a look at a running job takes two or three. */
const CALLS_PER_UNIT = 3;

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
    c.set("bounds", [...bounds, new Meter(limit, key)]);
    return next();
  };

/** What one request has been charged. */
class Meter implements RequestBound {
  readonly #limit: RateLimit;
  readonly #key: string;
  #charged = 1;

  constructor(limit: RateLimit, key: string) {
    this.#limit = limit;
    this.#key = key;
  }

  async check({ weight }: RequestCost): Promise<Response | undefined> {
    this.#charged = Math.max(this.#charged, weight);
    const limitReached = weight > 1 ? await this.#limit(this.#key, { weight: weight - 1, of: weight }) : undefined;
    return limitReached && limitedResponse(limitReached);
  }

  renew(scope: RequestScope): void {
    void this.charge(scope);
  }

  /** Charges the rest of what the request has taken. */
  release(scope: RequestScope): void {
    void this.charge(scope);
  }

  /** Charges what the request has taken beyond its weight. */
  async charge({ store }: RequestScope): Promise<LimitReached | undefined> {
    const weight = Math.ceil(store.calls / CALLS_PER_UNIT) - this.#charged;
    if (weight <= 0) return undefined;
    this.#charged += weight;
    return this.#limit(this.#key, { weight, of: this.#charged, isDone: true });
  }
}
