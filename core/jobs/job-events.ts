/** Events of jobs: the types, the filters and the log that the features share which report and deliver them. */
import type { Caller } from "../author/caller.ts";

/** The names of the events of a job's end, its questions and its progress, and of a partial result. */
export const JOB_ENDED = "job.ended";
export const JOB_QUESTION = "job.question";
export const JOB_PROGRESS = "job.progress";
export const JOB_OUTPUT = "job.output";

/** Whether the job's function itself emits events of this name: partial results, and events of its author. */
export const isEmittedByJob = (name: string): boolean => ![JOB_ENDED, JOB_QUESTION, JOB_PROGRESS].includes(name);

/** How long jobs are followed after a request for events, in milliseconds. */
export const INTEREST_MS = 60_000;

/** An event in the log. What a job produced is read from its promise when the event is delivered. */
export interface JobEvent {
  /** The same in all deliveries of the event. */
  id: string;
  name: string;
  /** When it happened, in milliseconds since the epoch. */
  at: number;
  job: string;
  kind: string;
  /** The data that the log itself holds, as JSON. */
  data: string;
}

/** A caller's filter for the jobs of events. A job must match all given fields. */
export interface EventFilter {
  jobNames?: readonly string[] | undefined;
  kinds?: readonly string[] | undefined;
  /** Jobs with one of these labels. */
  labels?: readonly string[] | undefined;
  /** Jobs that this schedule started, by the schedule's job name. */
  schedule?: string | undefined;
}

/** The same filter in the log's terms: with the promise ids of the jobs. */
export interface JobFilter extends Omit<EventFilter, "jobNames"> {
  jobs?: readonly string[] | undefined;
}

/** Which events a client wants, and after which position. */
export interface EventQuery {
  name: string;
  filter: EventFilter;
  /** The position up to which the caller has read; null: from now on. */
  cursor: string | null;
  maxAgeMs?: number | undefined;
  limit: number;
}

/** The same in the log's terms. */
export interface LogQuery extends Omit<EventQuery, "filter">, JobFilter {}

export interface LogPage {
  events: (JobEvent & { position: number; cursor: string })[];
  /** The position from which the log was read. */
  from: string;
  /** The position up to which the log has been read. */
  cursor: string;
  /** Whether events may be missing between the given cursor and these. */
  truncated: boolean;
  hasMore: boolean;
}

/** An event as its receivers get it. */
export interface Occurrence {
  eventId: string;
  name: string;
  timestamp: string;
  data: Record<string, unknown>;
  cursor?: string;
}

/** The log of a caller's events. */
export interface EventReader {
  read(query: LogQuery, now: number): LogPage;
  /** Where a reader begins: after its cursor, and after all events that are older than `maxAgeMs`. */
  begin(cursor: string | null, maxAgeMs: number | undefined, now: number): { cursor: string; truncated: boolean };
  /** The event at a position; undefined if the log has dropped it. */
  at(position: number): JobEvent | undefined;
  /** Whether a cursor is so far behind that storing a newer one is worthwhile. */
  isFar(cursor: string, now: number): boolean;
  cursorAt(position: number): string;
}

/** Who reads a caller's events, and what is made of them. */
export interface EventSource {
  readonly log: EventReader;
  /** A caller's filter in the log's terms. */
  jobFilter(filter: EventFilter): JobFilter;
  /** An event of the log as its receiver gets it. @throws {Error} if it cannot be read now */
  occurrence(event: JobEvent, caller: Caller): Promise<Occurrence>;
  /** Logs what is new in a job's progress feed. */
  noteFeed(job: { id: string; createdAt: number; timeoutAt: number }): Promise<unknown>;
}
