/**
 * Crash-loop detection: tells a job that ends its worker each time at the same point from a job that makes progress. A step
 * may end its process, take all of its memory, or block its thread for longer than the lease, and cannot report that.
 *
 * Each record holds the version of the job's task under which it was written, and each lease raises the version. After
 * several executions in a row without a record, the next one leaves a sign even if it has nothing to record. If still more
 * versions passed without a record, executions were lost or never began; from then on each one is marked when it begins.
 */
import { MINUTE } from "../../core/author/index.ts";
import type { Journal, JournalEntry } from "../../core/engine/index.ts";

/** How many executions in a row may end without a record. */
const MAX_EXECUTIONS_WITHOUT_RECORD = 4;

/** How many marked executions may be lost in a row at one point before the job rests. */
const MAX_LOST_EXECUTIONS = 3;

/** How many versions back the newest mark is searched: another job may have ended the process before a mark was written. */
const MAX_VERSIONS_BACK = 20;

/** The first rest of a job, and the longest. */
const FIRST_REST_MS = MINUTE;
const MAX_REST_MS = 60 * MINUTE;

/** The mark of an execution that may be lost like those before it: a promise of the job, `<job>:l<version>`. */
export interface Mark {
  /** How many executions in a row have begun at this point, this one included. */
  executions: number;
  /** The job rests until the mark settles, and then runs in any case. */
  rests?: boolean;
}

/** The record of an execution that has nothing else to record. */
export const ALIVE: JournalEntry = { kind: "alive", op: "" };

/** Whether an execution that is suspended under this version has to leave a sign. */
export function needsSignOfLife(journal: Journal, version: number): boolean {
  return versionsWithoutRecord(journal, version) >= MAX_EXECUTIONS_WITHOUT_RECORD;
}

/** Whether the execution that begins under this version has to be marked: others may have been lost. */
export function needsMark(journal: Journal, version: number): boolean {
  return versionsWithoutRecord(journal, version) > MAX_EXECUTIONS_WITHOUT_RECORD;
}

/** The versions that may have left marks since the last record, the newest first. */
export function markedBefore(journal: Journal, version: number): number[] {
  const length = Math.min(versionsWithoutRecord(journal, version) - 1, MAX_VERSIONS_BACK);
  return Array.from({ length }, (_, i) => version - 1 - i);
}

/**
 * How long a job rests after so many lost executions, in milliseconds. The random factor, from 0.75 to 1.25, keeps jobs
 * that were lost together from coming back together.
 */
export function restAfter(lostExecutions: number): number {
  if (lostExecutions < MAX_LOST_EXECUTIONS) return 0;
  return (
    Math.min(FIRST_REST_MS * 2 ** (lostExecutions - MAX_LOST_EXECUTIONS), MAX_REST_MS) * (0.75 + Math.random() / 2)
  );
}

/** Why a job rests. `until` is in milliseconds since the epoch. */
export const lostMessage = (until: number): string =>
  `each worker that ran it was lost: it may end its process, use up all memory, or hold its thread for longer than a lease. It is run again at ${new Date(until).toISOString()}`;

/** How many versions passed since the last record; 0 if that is no reason for suspicion. */
function versionsWithoutRecord({ events, run }: Journal, version: number): number {
  const versions = version - (events.at(-1)?.event.v ?? run?.v ?? 0);
  return versions < MAX_EXECUTIONS_WITHOUT_RECORD || hasOpenUntil(events) ? 0 : versions;
}

/**
 * Whether an `until` is open: its looks leave no records, and a lost look is not repeated before the next one is due. One that was
 * given up leaves no record of its end: it has lost a race, or the job was cancelled.
 */
function hasOpenUntil(events: Journal["events"]): boolean {
  const open = new Set<string>();
  const races = new Set<string>();
  for (const { event } of events) {
    if (event.kind === "begin" && event.of === "until") open.add(event.op);
    else if (event.kind === "until") open.delete(event.op);
    else if (event.kind === "race") races.add(event.op);
    else if (event.kind === "cancelled") open.clear();
  }
  return [...open].some((path) => !pathsAbove(path).some((each) => races.has(each)));
}

/** The paths of the calls that a call is part of. */
function pathsAbove(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, i) => names.slice(0, i + 1).join("/"));
}
