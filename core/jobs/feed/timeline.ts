/** What a job has done, for people: its journal without the values, which may be of any kind and size. */
import { JournalRecord, maxUnderWay } from "../../engine/journal.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { journalEntryId } from "../../store/ids.ts";
import { readFrom } from "../../store/sequence.ts";

/** How many journal entries one look reads. */
const MOST = 96;

/** A journal entry with its outcome; times are milliseconds since the epoch. */
export interface TimelineEntry {
  n: number;
  kind: JournalRecord["event"]["kind"];
  /** The command: the names of its contexts, its own name, and its number among commands of that name. */
  op: string;
  at: number;
  /** When a sleep, or a wait for the next attempt, is due to end. */
  until?: number;
  /** When it ended, or a question was answered. */
  over?: number;
  attempt?: number;
  error?: string;
  message?: string;
  /** Set when the deadline cancelled the job, and not a person. */
  by?: "deadline";
}

/**
 * Reads a bounded number of journal entries from the `from`th on, counted from 1. `next` is where to go on: the first entry
 * that may still change, or else the one after the last.
 */
export async function timelineOf(
  promiseId: string,
  from: number,
  get: (id: string) => Promise<PromiseRecord | undefined>,
): Promise<{ entries: TimelineEntry[]; next: number }> {
  const entries: TimelineEntry[] = [];
  let last = from - 1;
  await readFrom((n) => get(journalEntryId(promiseId, n)), from, {
    batch: (missing, read) => (read >= MOST || missing >= maxUnderWay(last) ? 0 : Math.max(8, maxUnderWay(last))),
    onEntry(record, n) {
      last = n;
      const entry = entryOf(n, record);
      if (entry) entries.push(entry);
    },
  });
  const open = entries.find((entry) => isOpen(entry));
  return { entries, next: open?.n ?? last + 1 };
}

const isOpen = ({ kind, over }: TimelineEntry) => /^(sleep|ask|retry)$/.test(kind) && over === undefined;

function entryOf(n: number, promise: PromiseRecord): TimelineEntry | undefined {
  try {
    const { event } = new JournalRecord(n, promise);
    const { kind, op } = event;
    const entry: TimelineEntry = { n, kind, op, at: promise.createdAt };
    if (kind === "sleep" || kind === "retry") entry.until = promise.timeoutAt;
    if (promise.state !== "pending") entry.over = promise.settledAt ?? promise.timeoutAt;
    if ("error" in event && event.error) entry.error = event.error.message;
    if (kind === "retry") entry.attempt = event.attempt;
    if (kind === "ask" && event.question) entry.message = event.question.message;
    if (kind === "cancelled" && event.by) entry.by = event.by;
    return entry;
  } catch {
    return undefined;
  }
}
