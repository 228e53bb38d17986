/** Makes an attempt wait until the `concurrency` and the `rate` of its step allow it. */
import { MINUTE, NondeterminismError, type StepOptions } from "../../core/author/index.ts";
import type { Attempt } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";

/** How long an attempt holds a place of its `concurrency` while it waits for its `rate`. */
const MAX_PLACE_WHILE_WAITING_MS = MINUTE;

/** How long an attempt may take that holds a place, if its step does not say. */
const DEFAULT_TIMEOUT_MS = MINUTE;

/**
 * How many attempts may be under way at once in the whole deployment, each for up to `time` milliseconds; or how many may
 * begin within `per` milliseconds.
 */
export type Limit = { name: string; limit: number } & ({ time: number; per?: never } | { per: number; time?: never });

/** Waits until one more attempt may begin, in turns by owner; resolves with the function that frees its place. */
export type TakeLimit = (limit: Limit, owner: string, signal: AbortSignal) => Promise<() => void>;

export const stepLimits = (take: TakeLimit): WorkerFeature => ({
  name: "step-limits",
  stepOptions: ["concurrency", "rate"],
  async attempt(attempt, next) {
    if (attempt.options.concurrency) attempt.timeoutMs ??= DEFAULT_TIMEOUT_MS;
    const leave = await waitForLimits(attempt, take);
    try {
      return await next();
    } finally {
      leave?.();
    }
  },
});

/**
 * The rate comes last: attempts that had passed it while they waited for a place could begin together. An attempt that waits long
 * for its rate gives its place to others, whose steps may have no rate, and begins to wait again.
 */
async function waitForLimits(
  { path, options, step, clock, timeoutMs = DEFAULT_TIMEOUT_MS }: Attempt,
  take: TakeLimit,
): Promise<(() => void) | undefined> {
  const { owner, signal } = step;
  const concurrency = checkedLimit(path, options.concurrency);
  const rate = checkedLimit(path, options.rate);
  const place = concurrency && { ...concurrency, time: timeoutMs + (rate ? MAX_PLACE_WHILE_WAITING_MS : 0) };
  for (;;) {
    const leave = place && (await take(place, owner, signal));
    if (!rate) return leave;
    const late = new AbortController();
    const cancel = leave && clock.after(MAX_PLACE_WHILE_WAITING_MS, () => late.abort(late));
    try {
      await take(rate, owner, AbortSignal.any([signal, late.signal]));
      return leave;
    } catch (error) {
      leave?.();
      if (error !== late) throw error;
    } finally {
      cancel?.();
    }
  }
}

type LimitOption = NonNullable<StepOptions["concurrency"] | StepOptions["rate"]> & { per?: number };

/** @throws {NondeterminismError} for a limit under which no attempt would ever begin */
function checkedLimit<T extends LimitOption>(path: string, option: T | undefined): T | undefined {
  if (!option) return undefined;
  const { name, limit, per = 1 } = option;
  if (typeof name === "string" && name !== "" && Number.isSafeInteger(limit) && limit >= 1 && per >= 1) return option;
  throw new NondeterminismError(
    `step "${path}": a concurrency takes { name, limit }, a rate { name, limit, per }: a limit from 1 on, and milliseconds`,
  );
}
