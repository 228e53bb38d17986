/** Limits of what callers may ask for in a period, and the words for those who exceed them. */
import type { RemoteStore } from "../../core/jobs/index.ts";
import type { LimitReached, RequestBound } from "../../core/tools/index.ts";

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

/** How many calls to the Resonate server one unit of weight pays for: a look at a running job takes two or three. */
const CALLS_PER_UNIT = 3;

/** What the work of one request costs its caller: its weight before it begins, and the rest as it proceeds. */
export class Meter implements RequestBound {
  readonly #limit: RateLimit;
  readonly #key: string;
  #charged: number;

  /** @param charged what the caller has been charged for the request already */
  constructor(limit: RateLimit, key: string, charged: number) {
    this.#limit = limit;
    this.#key = key;
    this.#charged = charged;
  }

  async check({ weight }: { weight: number }): Promise<Response | undefined> {
    const rest = weight - this.#charged;
    if (rest <= 0) return undefined;
    this.#charged = weight;
    const limitReached = await this.#limit(this.#key, { weight: rest, of: weight });
    return limitReached && limitedResponse(limitReached);
  }

  renew(request: { store: RemoteStore }): void {
    void this.charge(request);
  }

  /** Charges the rest of what the request has taken. */
  release(request: { store: RemoteStore }): void {
    void this.charge(request);
  }

  /** Charges what the request has taken beyond its weight. */
  async charge({ store }: { store: RemoteStore }): Promise<LimitReached | undefined> {
    const weight = Math.ceil(store.calls / CALLS_PER_UNIT) - this.#charged;
    if (weight <= 0) return undefined;
    this.#charged += weight;
    return this.#limit(this.#key, { weight, of: this.#charged, isDone: true });
  }
}
