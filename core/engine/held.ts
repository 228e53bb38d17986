/** What holds a worker, and until when. */
import { SECOND } from "../definitions/context.ts";
import { LOOK_AGAIN } from "./awaitables.ts";
import type { Command } from "./command.ts";

/** A pause up to this long is waited for here; a longer one holds no worker. In milliseconds. */
const LONGEST_HELD = 5 * SECOND;

/** Whether a call holds the worker: its work runs, or will go on soon. */
export function isHeld({ isRunning, pause, kind }: Command, now: number): boolean {
  return isRunning || (pause !== undefined && kind !== "until" && pause.due - now <= LONGEST_HELD);
}

/** When the next sleep, pause or look is due, in milliseconds since the epoch. */
export function nextDue(ops: readonly Command[], now: number): number | undefined {
  const due = ops.flatMap(({ pause, awaited: external }) => pause?.due ?? external?.due ?? []);
  return due.length > 0 ? Math.min(...due.map((at) => (at > now ? at : now + LOOK_AGAIN))) : undefined;
}
