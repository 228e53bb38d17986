/**
 * Crash-loop detection: tells a job whose workers are lost each time at one point from a job that goes on. A step may end
 * its process, take all of its memory, or hold its thread for longer than the lease: no code of the step can report that.
 *
 * Each record holds the version of the job's task under which it was written, and each lease raises the version. An
 * execution that has nothing to record leaves a sign when several in a row had not. Where more versions than that passed
 * without a record, executions were lost, or no worker began them; from then on each one that begins is marked.
 */
import { MINUTE } from "../../definitions/context.ts";
import { executionMarkId } from "../../store/ids.ts";
import type { Journal, JournalEntry } from "../journal.ts";

/** How many executions in a row may end without a record. */
const UNSEEN = 4;

/** How many marked executions may be lost in a row at one point before the job rests. */
const LOST = 3;

/** How many versions back the newest mark is searched: other jobs of the process may end an execution before its mark. */
const LOOKED_BACK = 20;

const FIRST_PAUSE = MINUTE;
const LONGEST_PAUSE = 60 * MINUTE;

/** The mark of an execution that may be lost as those before it were: a promise of the job, `<job>:l<version>`. */
export interface Mark {
  /** How many executions in a row have begun at this point, this one included. */
  begun: number;
  /** The job rests until the mark settles, and runs then in any case. */
  rests?: boolean;
}

export const markId = executionMarkId;

/** The record of an execution that has nothing else to record. */
export const SIGN: JournalEntry = { kind: "heard", op: "" };

/** Whether an execution that is suspended under this version has to leave a sign. */
export function needsSign(journal: Journal, version: number): boolean {
  return unseen(journal, version) >= UNSEEN;
}

/** Whether the execution that begins under this version has to be marked: others may have been lost. */
export function needsMark(journal: Journal, version: number): boolean {
  return unseen(journal, version) > UNSEEN;
}

/** The versions that may have left marks since the last record, the newest first. */
export function markedBefore(journal: Journal, version: number): number[] {
  const length = Math.min(unseen(journal, version) - 1, LOOKED_BACK);
  return Array.from({ length }, (_, i) => version - 1 - i);
}

/**
 * How long a job rests after so many lost executions, in milliseconds. Half of it is random, so that jobs which were lost
 * together do not come back together.
 */
export function restAfter(lost: number): number {
  if (lost < LOST) return 0;
  return Math.min(FIRST_PAUSE * 2 ** (lost - LOST), LONGEST_PAUSE) * (0.75 + Math.random() / 2);
}

/** How many versions passed since the last record; 0 where executions may well leave none. */
function unseen({ events, run }: Journal, version: number): number {
  const versions = version - (events.at(-1)?.event.v ?? run?.v ?? 0);
  return versions < UNSEEN || hasOpenUntil(events) ? 0 : versions;
}

/** The looks of an `until` leave no records, and a look that is lost is not repeated before the next one is due. */
function hasOpenUntil(events: Journal["events"]): boolean {
  const open = new Set<string>();
  for (const { event } of events) {
    if (event.kind === "begin" && event.of === "until") open.add(event.op);
    else if (event.kind === "until") open.delete(event.op);
  }
  return open.size > 0;
}
