import { unhandledWakeupId } from "../store/ids.ts";

/** How often a blocked job is looked at again, as code that fits may be back; in milliseconds. */
const LOOK = 60_000;

/** The wake-up promise of a job that is blocked at `now`, and when it resolves, in milliseconds since the epoch. */
export function wakeupOf(promiseId: string, now: number): { id: string; due: number } {
  const period = Math.floor(now / LOOK) + 1;
  return { id: unhandledWakeupId(promiseId, period), due: period * LOOK };
}

/** Why a job rests whose workers were all lost. `until` is in milliseconds since the epoch. */
export const lostWords = (until: number): string =>
  `${LOST}: it may end its process, use up all memory, or hold its thread for longer than a lease. It is run again at ${new Date(until).toISOString()}`;

const LOST = "each worker that ran it was lost";

/** Whether this is why a job is blocked. */
export const isLost = (reason: string): boolean => reason.startsWith(LOST);
