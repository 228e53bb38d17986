/** When a job that cannot go on is looked at again. */

/** How often one is for which code that fits may be back, in milliseconds. */
const LOOK = 60_000;

/** The promise that a job sleeps on which is blocked at `now`, and when it ends by itself: times are milliseconds since the epoch. */
export function bellOf(promiseId: string, now: number): { id: string; due: number } {
  const due = (Math.floor(now / LOOK) + 1) * LOOK;
  return { id: `${promiseId}:b${due / LOOK}`, due };
}

/** What is said of a job that is left alone, as whoever ran it was lost each time. `until` is in milliseconds since the epoch. */
export const lostWords = (until: number): string =>
  `${LOST}: what it does may end its process, take all its memory, or hold its thread for longer than a lease. It is run again at ${new Date(until).toISOString()}`;

const LOST = "each worker that ran it was lost";

/** Whether what a job is blocked by is that. */
export const isLost = (reason: string): boolean => reason.startsWith(LOST);
