/** What a job has done, for people: its records (`../durable/events.ts`) without the values, which may be anything. */
import { eventId, JournalRecord, maxUnderWay } from "../engine/journal.ts";
import type { PromiseRecord } from "../store/protocol.ts";

/** The most records that one look reads. */
const MOST = 96;

/** A record, or what has come of it since; times are milliseconds since the epoch. */
export interface TimelineEntry {
  n: number;
  kind: JournalRecord["event"]["kind"];
  /** The call: the names of its contexts, its own, and which of that name. */
  op: string;
  at: number;
  /** When a sleep or a wait for the next attempt is over. */
  until?: number;
  /** When that was over, or a question answered. */
  over?: number;
  /** Which attempt failed. */
  attempt?: number;
  error?: string;
  /** What was asked. */
  message?: string;
}

/**
 * The records from the `from`th on, counted from 1, as many as a look reads, and from which on there may be more: the first
 * that may still change, or else the next.
 */
export async function timelineOf(
  promiseId: string,
  from: number,
  get: (id: string) => Promise<PromiseRecord | undefined>,
): Promise<{ entries: TimelineEntry[]; next: number }> {
  const entries: TimelineEntry[] = [];
  let last = from - 1;
  for (let read = 0, missing = 0; read < MOST && missing < maxUnderWay(last); ) {
    const first = from + read;
    const batch = Math.max(8, maxUnderWay(last));
    const records = await Promise.all(Array.from({ length: batch }, (_, i) => get(eventId(promiseId, first + i))));
    read += batch;
    for (const [i, record] of records.entries()) {
      const entry = record && entryOf(first + i, record);
      missing = record ? 0 : missing + 1;
      if (record) last = first + i;
      if (entry) entries.push(entry);
    }
  }
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
    if (kind === "ask") entry.message = event.question.message;
    return entry;
  } catch {
    return undefined;
  }
}
