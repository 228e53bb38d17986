import { unhandledWakeupId } from "../resonate/ids.ts";

/** How often a blocked job is tried again, in milliseconds, as code that fits its journal may be back. */
const CHECK_INTERVAL_MS = 60_000;

/** The wake-up promise of a job that is blocked at `now`, and when it resolves, in milliseconds since the epoch. */
export function wakeupOf(promiseId: string, now: number): { id: string; due: number } {
  const period = Math.floor(now / CHECK_INTERVAL_MS) + 1;
  return { id: unhandledWakeupId(promiseId, period), due: period * CHECK_INTERVAL_MS };
}
