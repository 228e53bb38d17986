/** The time of a stack, which a test advances. */
import type { ResonateClient } from "../../core/resonate/index.ts";
import type { Time } from "../time/stack-time.ts";
import { becomesIdle, nextTimeout } from "./job-states.ts";

/**
 * The time of a {@link TestStack}.
 *
 * @example
 * const nextYear = async ({ now, advance }: TestTime) => {
 *   await advance(Date.UTC(new Date(now).getUTCFullYear() + 1, 0) - now);
 * };
 */
export interface TestTime {
  /** Milliseconds since the epoch, in all processes of the stack. */
  readonly now: number;
  /**
   * Advances the time of all processes by `ms` milliseconds, from one due promise to the next. Each time it waits until every
   * job sleeps, waits or has finished, but no longer than five real seconds. A process that is stopped or blocked follows when it
   * continues. Calls at the same time take place one after another. The edge's timeouts of tool calls, its schedules and its web
   * hooks use the machine's time.
   *
   * @throws {TypeError} if `ms` is negative or not a finite number
   */
  advance(ms: number): Promise<void>;
}

/** How long `advance` waits for running jobs, in real milliseconds. */
const MAX_IDLE_WAIT_MS = 5_000;
/** How long jobs may run before the time moves a little, in case they wait for that; and how far it then moves. */
const IDLE_CHECK_MS = 100;
const SMALL_MOVE_MS = 500;

/** The time of the stack whose jobs `server` has. */
export function testTime(time: Time, server: ResonateClient): TestTime {
  let lastAdvance = Promise.resolve();
  return {
    get now() {
      return Date.now() + time.ahead;
    },
    async advance(ms) {
      if (!Number.isFinite(ms) || ms < 0) throw new TypeError(`The time cannot advance by ${ms} ms.`);
      const advance = lastAdvance.then(() => advanceTime(time, server, ms));
      lastAdvance = advance.catch(() => {});
      return advance;
    },
  };
}

async function advanceTime(time: Time, server: ResonateClient, ms: number): Promise<void> {
  const now = () => Date.now() + time.ahead;
  const end = now() + ms;
  let waitLeft = MAX_IDLE_WAIT_MS;
  for (;;) {
    const startedAt = performance.now();
    const isIdle = await becomesIdle(server, Math.min(IDLE_CHECK_MS, waitLeft));
    const timeLeft = end - now();
    if (isIdle) waitLeft = MAX_IDLE_WAIT_MS;
    else waitLeft -= performance.now() - startedAt;
    const mayMove = isIdle || waitLeft <= 0;
    if (timeLeft <= 0) {
      if (mayMove) return;
    } else if (mayMove) {
      const due = await nextTimeout(server, now());
      await time.move(Math.min(timeLeft, Math.max((due ?? end) - now(), 0) + 1));
    } else {
      // A job in a short pause holds its lease, and keeps it if the time moves by less than the lease's duration.
      await time.move(Math.min(timeLeft, SMALL_MOVE_MS));
    }
  }
}
