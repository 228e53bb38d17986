/** What the edge keeps of a caller's jobs beside their promises, for the quota and the list: see `functions/caller/`. */
import { decodeValue, RESERVATION, STARTER } from "../../store/codec.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { endOf } from "../../store/deadline.ts";
import { sizeOf } from "../../store/size.ts";
import { labelsOf } from "./labels.ts";
import { type Reservation, reservationIn } from "./reservation.ts";

/** The tag that holds a job's kind. */
export const KIND = "durable-mcp:kind";

/** A job that a caller started. Times are in milliseconds since the epoch. */
export interface StartedJob extends Reservation {
  id: string;
  kind: string;
  state: PromiseRecord["state"];
  startedAt: number;
  settledAt: number | null;
  /** When it ends at the latest, or is expected to. */
  due: number;
  /** Whether its reservation was taken by an edge of 1c007cb. */
  isEarlier: boolean;
  /** What is stored of it, as far as that is known; 0 for a job that another caller started. */
  bytes: number;
  labels: readonly string[];
}

export interface ListedJob extends Pick<StartedJob, "id" | "state" | "startedAt" | "labels"> {
  /** It is where the search for others stopped, which goes on after it. It need not be one that is searched for. */
  passed?: true;
}

/** What a caller may have; 0 is no limit. */
export interface Most {
  /** The jobs of a period that are under way. */
  jobs: number;
  /** The bytes that are stored of its jobs. */
  bytes: number;
}

/** What a look at a job found: `state` is undefined for a promise that does not exist. */
export type SeenJob = StartedJob | { id: string; state?: undefined };

export interface ListQuery {
  kind?: string | undefined;
  /** Lists jobs in this state, and those that were pending when they were last seen. */
  state?: PromiseRecord["state"] | undefined;
  /** Lists what comes after this job in the list. */
  after?: Pick<StartedJob, "startedAt" | "id"> | undefined;
  /** Lists jobs of which each of these words is in the name, the kind or a label. */
  search?: string | undefined;
  limit: number;
}

export type Reserved = "reserved" | "known" | "full" | "stored" | "schedules";

/** The record of one caller. Every method throws {@link ResonateUnavailable} where it cannot be reached. */
export interface CallerRecord {
  /**
   * Adds a job that is about to be started, with its reservation, to the record. `known`: the job was there, and is
   * pending. `full`: the caller has as many jobs under way as it may; `stored`: as many bytes; `schedules`: as many of those.
   */
  reserve(job: StartedJob, most: Most): Promise<Reserved>;
  /** The bytes that are stored of the caller's jobs. */
  stored(): Promise<number>;
  /** Notes how jobs were found; `onlyKnown` leaves out those that are not in the record. */
  note(jobs: readonly SeenJob[], onlyKnown?: boolean): Promise<void>;
  /** Removes all generations of a job's name from the record; `isHidden` leaves them to count, and out of the list. */
  forget(id: string, isHidden: boolean): Promise<void>;
  /** The caller's jobs, newest first. */
  list(query: ListQuery): Promise<ListedJob[]>;
}

/** The kind of job that a promise says it is of. */
export const kindIn = ({ tags, param }: PromiseRecord): string =>
  tags[KIND] ?? String((decodeValue(param) as { func?: unknown } | undefined)?.func ?? "");

/** What a job's promise says of it for the caller with this key, who started it at `startedAt` unless he created it. */
export function startedJob(record: PromiseRecord, key: string, startedAt = Date.now()): StartedJob {
  const { id, createdAt, settledAt, timeoutAt, tags } = record;
  const kind = kindIn(record);
  const isOwn = tags[STARTER] === undefined || tags[STARTER] === key;
  const reservation = isOwn ? reservationIn(tags[RESERVATION]) : { period: "", count: 0, isEarlier: false };
  return {
    ...{ id, kind, state: endOf(record), ...reservation, due: timeoutAt, settledAt: settledAt ?? null },
    startedAt: isOwn ? createdAt : startedAt,
    bytes: isOwn ? sizeOf(record) : 0,
    labels: isOwn ? labelsOf(decodeValue(record.param)) : [],
  };
}
