import { MINUTE, type Retry, RetryableError, SECOND } from "../../author/context.ts";
import { isFinal } from "../../author/values.ts";
import { backoff } from "../../resonate/pacing/backoff.ts";

/** No attempt begins with less time than this before the job's deadline, in milliseconds. */
const MIN_ATTEMPT_MS = 2 * SECOND;

/** The failed attempts of a step. */
interface Failure {
  /** How many attempts have failed, this one included. */
  attempts: number;
  /** When the first of them failed, and now; milliseconds since the epoch. */
  since: number;
  now: number;
  /** When the job times out. */
  deadline: number;
}

/**
 * The pause before the next attempt, in milliseconds; undefined if no attempt follows. A pause never reaches past the
 * retry's budget or the job's deadline: the step fails with its reason instead, before the job would time out without one.
 */
export function pauseAfter(
  error: unknown,
  retry: Retry | false | undefined,
  { attempts, since, now, deadline }: Failure,
  random = Math.random(),
): number | undefined {
  if (retry === false || isFinal(error)) return undefined;
  const { maxDuration = 10 * MINUTE, maxAttempts = Infinity } = retry ?? {};
  const { initialInterval = SECOND, maxInterval = MINUTE } = retry ?? {};
  if (attempts >= maxAttempts) return undefined;
  const wait = backoff(attempts, { base: initialInterval, max: maxInterval }, random);
  // Never sooner than asked for; the random part on top spreads jobs that were rejected together.
  const retryAfter = error instanceof RetryableError ? error.retryAfter : undefined;
  const hasRetryAfter = typeof retryAfter === "number" && !Number.isNaN(retryAfter);
  const pause = hasRetryAfter ? Math.max(wait, retryAfter + Math.round(500 * random)) : wait;
  // False also where an option is no number: the record of the pause needs one.
  const isInTime = now + pause <= Math.min(since + maxDuration, deadline - MIN_ATTEMPT_MS);
  return isInTime ? pause : undefined;
}
