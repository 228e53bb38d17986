import { backoff } from "../backoff.ts";
import type { UpstreamError } from "../open-meteo.ts";

/** A request that failed and is worth repeating, after a wait. */
export interface Retry {
  reason: string;
  retry_in_ms: number;
  /** Whether the archive answered, but not with what was asked for. */
  invalid: boolean;
}

const BACKOFF = { base: 1_000, max: 60_000 };

/** How often an answer may be unusable before it is taken for final: that does not mend itself as an outage does. */
const MAX_INVALID = 4;

/** A request is not begun with less time than this before the deadline, in milliseconds. */
const SHORTEST_ATTEMPT = 2_000;

/**
 * What follows a failed request: another one, or the job's failure. A request that would not fit before the deadline is
 * not waited for, so that the job ends with its reason instead of being timed out without one.
 *
 * `attempt` counts from 1, `invalid` the unusable answers before this one, `timeLeft` is in milliseconds.
 */
export function nextStep(
  error: UpstreamError,
  { attempt, invalid, timeLeft }: { attempt: number; invalid: number; timeLeft: number },
  random = Math.random(),
): Retry | { failure: string } {
  const reason = error.message;
  if (error.kind === "refused") return { failure: reason };
  const gaveUp = { failure: `gave up after ${attempt} ${attempt === 1 ? "attempt" : "attempts"}: ${reason}` };
  const isInvalid = error.kind === "invalid";
  if (isInvalid && invalid + 1 >= MAX_INVALID) return gaveUp;
  const wait = backoff(attempt, BACKOFF, random);
  // Never sooner than the archive asked for; the random part on top keeps those it sent away together apart.
  const retry_in_ms =
    error.retryAfter === undefined ? wait : Math.max(wait, error.retryAfter + Math.round(500 * random));
  return timeLeft - retry_in_ms < SHORTEST_ATTEMPT ? gaveUp : { reason, retry_in_ms, invalid: isInvalid };
}
