import { unhandledWakeupId } from "../resonate/ids.ts";

/** How often a blocked job is tried again, in milliseconds, as code that fits its journal may be back. */
const LOOK = 60_000;

/** The wake-up promise of a job that is blocked at `now`, and when it resolves, in milliseconds since the epoch. */
export function wakeupOf(promiseId: string, now: number): { id: string; due: number } {
  const period = Math.floor(now / LOOK) + 1;
  return { id: unhandledWakeupId(promiseId, period), due: period * LOOK };
}

/** Why a job rests: every worker that ran it was lost. `until` is in milliseconds since the epoch. */
export const lostWords = (until: number): string =>
  `${LOST}: it may end its process, use up all memory, or hold its thread for longer than a lease. It is run again at ${new Date(until).toISOString()}`;

const LOST = "each worker that ran it was lost";

/** Whether `reason` was made by {@link lostWords}. */
export const isLost = (reason: string): boolean => reason.startsWith(LOST);
