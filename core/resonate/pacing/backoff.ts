/**
 * Milliseconds to wait after the `failures`th failure in a row, counted from 1. Doubles from `base` up to `max`. Half of it is
 * random, so that clients that failed together do not come back together. `random` is in [0, 1).
 */
export function backoff(
  failures: number,
  { base, max }: { base: number; max: number },
  random = Math.random(),
): number {
  const full = Math.min(max, base * 2 ** (failures - 1));
  return Math.round(full / 2 + (full / 2) * random);
}

/** Resolves after `ms` milliseconds, or as soon as `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal?.addEventListener("abort", over);
  });
}

/** The value of `promise`; undefined if it does not come within `ms` milliseconds, or before `signal` aborts. */
export async function within<T>(promise: Promise<T>, ms: number, signal?: AbortSignal): Promise<T | undefined> {
  const over = new AbortController();
  const late = pause(Math.max(ms, 0), signal ? AbortSignal.any([signal, over.signal]) : over.signal);
  return Promise.race([promise, late.then(() => undefined)]).finally(() => over.abort());
}

/**
 * Repeats `attempt` until `signal` aborts, with pauses that grow while attempts end soon. An attempt that lasted longer than
 * the longest pause counts as a success. Rejects as soon as an attempt does.
 */
export async function persist(
  attempt: () => Promise<void>,
  { signal, base, max }: { signal: AbortSignal; base: number; max: number },
): Promise<void> {
  for (let failures = 0; !signal.aborted;) {
    const startedAt = Date.now();
    await attempt();
    if (Date.now() - startedAt > max) failures = 0;
    await pause(backoff(++failures, { base, max }), signal);
  }
}
