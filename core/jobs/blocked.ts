/** When a blocked job is looked at again, which code that fits may be back for. */

/** How often, in milliseconds. */
const LOOK = 60_000;

/** The promise that a job sleeps on which is blocked at `now`, and when it ends by itself: times are milliseconds since the epoch. */
export function bellOf(promiseId: string, now: number): { id: string; due: number } {
  const due = (Math.floor(now / LOOK) + 1) * LOOK;
  return { id: `${promiseId}:b${due / LOOK}`, due };
}
