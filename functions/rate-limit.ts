/** How many requests a caller may make. */
import type { Config } from "./config.ts";

/** Counts a request of a caller; the answer that refuses it when it is one too many. */
export type RateLimit = (key: string) => Promise<Response | undefined> | Response | undefined;

/** What the limits are about, in seconds. */
const PERIOD = 60;

/**
 * Cloudflare's rate limiter where it is bound, which counts for a whole location, and otherwise a count that this
 * isolate keeps by itself. Undefined when there is no limit.
 */
export function createRateLimit({
  RATE_LIMITER: limiter,
  RATE_LIMIT: most,
}: Pick<Config, "RATE_LIMITER" | "RATE_LIMIT">): RateLimit | undefined {
  if (limiter) {
    return async (key) =>
      (await limiter.limit({ key })).success ? undefined : refusal("as many as this server allows");
  }
  return most > 0 ? countedByPeriod(most) : undefined;
}

function countedByPeriod(most: number): RateLimit {
  const counts = new Map<string, number>();
  let end = 0;
  return (key) => {
    const now = Date.now();
    if (now >= end) {
      counts.clear();
      end = now + PERIOD * 1_000;
    }
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count > most ? refusal(String(most), Math.ceil((end - now) / 1_000)) : undefined;
  };
}

function refusal(most: string, seconds = PERIOD): Response {
  const error_description = `Too many requests: a caller may make ${most} in ${PERIOD} seconds. Try again in ${seconds} seconds.`;
  const headers = { "retry-after": String(seconds) };
  return Response.json({ error: "rate_limit_exceeded", error_description }, { status: 429, headers });
}
