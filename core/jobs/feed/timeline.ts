/** What a job has done, for people: its journal without the values, which may be of any kind and size. */
import { JournalRecord, maxUnderWay } from "../../engine/journal.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import { journalEntryId } from "../../resonate/ids.ts";
import { readFrom } from "../../resonate/sequence.ts";

/** How many journal entries one look reads, and how many of the open ones it reads again. */
const MAX_ENTRIES_PER_READ = 96;
export const MAX_OPEN_ENTRIES = 16;

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
  endedAt?: number;
  attempt?: number;
  error?: string;
  message?: string;
  /** Set when the deadline cancelled the job, and not a person. */
  by?: "deadline";
}

/**
 * Reads a bounded number of journal entries from the `from`th on, counted from 1, and before them those of `open`, the entries
 * that the reader knows as open. `next` is where to go on: after the last entry.
 */
export async function timelineOf(
  promiseId: string,
  from: number,
  get: (id: string) => Promise<PromiseRecord | undefined>,
  open: readonly number[] = [],
): Promise<{ entries: TimelineEntry[]; next: number }> {
  const entry = (n: number) => get(journalEntryId(promiseId, n));
  const entries: TimelineEntry[] = [];
  let last = from - 1;
  const reread = open.slice(0, MAX_OPEN_ENTRIES).map(async (n) => entryOf(n, await entry(n)));
  const newEntries = readFrom(entry, from, {
    batch: (missing, read) =>
      read >= MAX_ENTRIES_PER_READ || missing >= maxUnderWay(last) ? 0 : Math.max(8, maxUnderWay(last)),
    onEntry(record, n) {
      last = n;
      const entry = entryOf(n, record);
      if (entry) entries.push(entry);
    },
  });
  const [openEntries] = await Promise.all([Promise.all(reread), newEntries]);
  return { entries: [...openEntries.filter((each) => each !== undefined), ...entries], next: last + 1 };
}

/** Whether an entry may still change. */
export const isOpen = ({ kind, endedAt }: TimelineEntry) => /^(sleep|ask|retry)$/.test(kind) && endedAt === undefined;

function entryOf(n: number, promise: PromiseRecord | undefined): TimelineEntry | undefined {
  if (!promise) return undefined;
  try {
    const { event } = new JournalRecord(n, promise);
    const { kind, op } = event;
    const entry: TimelineEntry = { n, kind, op, at: promise.createdAt };
    if (kind === "sleep" || kind === "retry") entry.until = promise.timeoutAt;
    if (promise.state !== "pending") entry.endedAt = promise.settledAt ?? promise.timeoutAt;
    if ("error" in event && event.error) entry.error = event.error.message;
    if (kind === "retry") entry.attempt = event.attempt;
    if (kind === "ask" && event.question) entry.message = event.question.message;
    if (kind === "cancelled" && event.by) entry.by = event.by;
    if (kind === "cancelled" && event.reason) entry.message = event.reason;
    return entry;
  } catch {
    return undefined;
  }
}
