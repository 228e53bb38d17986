/**
 * Tells a job that comes no further, because whoever runs it is lost each time, from one that goes on. What it does may end
 * the process, take all its memory, or hold its thread for longer than the lease: none of it can say so itself.
 *
 * Each record says under which version of the job's task it was written, and versions grow with each lease. A pass that has
 * nothing to record leaves a sign when several in a row had not, and is not lost. So where more versions have passed
 * without any, passes were lost, or nobody has begun one; from then on each that is begun is marked.
 */
import { MINUTE } from "../definitions/context.ts";
import { executionMarkId } from "../store/ids.ts";
import type { Journal, JournalEntry } from "./journal.ts";

/** So many passes in a row may end without a record. */
const UNSEEN = 4;

/** So many may be lost in a row at one point, of those that were marked, before the job is left alone for a while. */
const LOST = 3;

/** Among so many passes the newest mark is looked for: one may be lost before it is marked, by what runs beside it. */
const LOOKED_BACK = 20;

const FIRST_PAUSE = MINUTE;
const LONGEST_PAUSE = 60 * MINUTE;

/** What a pass is marked with that may be lost as those before it were: a promise of the job's, `<job>:l<version>`. */
export interface Mark {
  /** How many in a row have begun at this point, this one as well. */
  begun: number;
  /** The job is left alone until the mark settles, and then run whatever had been lost. */
  rests?: boolean;
}

export const markId = executionMarkId;

/** The record of a pass that has nothing else to record. */
export const SIGN: JournalEntry = { kind: "heard", op: "" };

/** Whether a pass that goes to sleep under this version has to leave a sign. */
export function needsSign(history: Journal, version: number): boolean {
  return unseen(history, version) >= UNSEEN;
}

/** Whether the pass that begins under this version is to be marked: others may have been lost. */
export function needsMark(history: Journal, version: number): boolean {
  return unseen(history, version) > UNSEEN;
}

/** The versions whose marks are of what is at a stand now, the newest first. */
export function markedBefore(history: Journal, version: number): number[] {
  const passes = Math.min(unseen(history, version) - 1, LOOKED_BACK);
  return Array.from({ length: passes }, (_, i) => version - 1 - i);
}

/**
 * For how long a job is left alone of which so many passes were lost, in milliseconds: half of it random, so that those
 * which were lost beside it do not come back with it.
 */
export function restAfter(lost: number): number {
  if (lost < LOST) return 0;
  return Math.min(FIRST_PAUSE * 2 ** (lost - LOST), LONGEST_PAUSE) * (0.75 + Math.random() / 2);
}

/** How many versions there were since the last record; 0 where that is not known, or a pass may well leave none. */
function unseen({ events }: Journal, version: number): number {
  const last = events.at(-1)?.event;
  if (last && last.v === undefined) return 0;
  const versions = version - (last?.v ?? 0);
  return versions < UNSEEN || looks(events) ? 0 : versions;
}

/** Whether an `until` is open. Its looks leave no records; and one that is lost is not made again before the next is due. */
function looks(events: Journal["events"]): boolean {
  const open = new Set<string>();
  for (const { event } of events) {
    if (event.kind === "begin" && event.of === "until") open.add(event.op);
    else if (event.kind === "until") open.delete(event.op);
  }
  return open.size > 0;
}
