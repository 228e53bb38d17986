/** What the edge stores about a caller's jobs besides their promises, for the quota and the list: see `functions/objects/`. */

import { decodeValue, RESERVATION_TAG, STARTER_TAG } from "../resonate/codec.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { endOf } from "../resonate/deadline.ts";
import { sizeOf } from "../resonate/size.ts";
import { type Reservation, reservationIn } from "./reservation.ts";

/** The tag that holds a job's kind. */
export const KIND_TAG = "durable-mcp:kind";

/** A job that a caller started. Times are in milliseconds since the epoch. */
export interface StartedJob extends Reservation {
  id: string;
  kind: string;
  state: PromiseRecord["state"];
  startedAt: number;
  settledAt: number | null;
  /** When the job must end, or is expected to. */
  due: number;
  /** Its stored size, as far as it is known; 0 for a job that another caller started. */
  bytes: number;
  labels: readonly string[];
}

export interface ListedJob extends Pick<StartedJob, "id" | "state" | "startedAt" | "labels"> {
  /** The search stopped at this job, and goes on after it. The job itself need not match the search. */
  isSearchEnd?: true;
}

/** What a job counts as that the caller has not started, or that no quota counts. */
export const NO_RESERVATION = { period: "", count: 0, bytes: 0, labels: [] };

/** A caller's limits; 0 means no limit. */
export interface CallerLimits {
  /** The jobs that were started in a period and are under way; infinite: counted, and never refused. */
  jobs: number;
  /** The stored bytes of its jobs, a finite number. */
  bytes: number;
}

/** A job as its promise shows it; `state` is undefined for a promise that does not exist. */
export type ObservedJob = StartedJob | { id: string; state?: undefined };

export interface ListQuery {
  kind?: string | undefined;
  /** Lists jobs in this state, and those that were pending when they were last seen. */
  state?: PromiseRecord["state"] | undefined;
  /** Lists what comes after this job in the list. */
  after?: Pick<StartedJob, "startedAt" | "id"> | undefined;
  /** Lists jobs that have each of these words in the name, the kind or a label. */
  search?: string | undefined;
  limit: number;
}

export type ReserveAnswer = "reserved" | "known" | "full" | "stored" | { refused: string };

/** The records of a deployment's callers, and the limits of each caller. */
export interface CallerRecords {
  readonly limits: CallerLimits;
  /** `charge` receives the number of calls to the Resonate server that the record makes. */
  of(key: string, charge?: (calls: number) => void): CallerRecord;
}

/** The record of one caller. Every method throws {@link ResonateUnavailable} when the record cannot be reached. */
export interface CallerRecord {
  /**
   * Adds a job that is about to be started, with its reservation, to the record. `known`: the record has the job already, as
   * pending. The other answers say which limit the caller has reached: `full` its jobs under way, `stored` its bytes,
   * `refused` another one, in words.
   */
  reserve(job: StartedJob, limits: CallerLimits): Promise<ReserveAnswer>;
  /** The stored bytes of the caller's jobs. */
  stored(): Promise<number>;
  /** Updates jobs to how their promises look; `onlyKnown` leaves out those that are not in the record. */
  note(jobs: readonly ObservedJob[], onlyKnown?: boolean): Promise<void>;
  /** Removes all generations of a job's name from the record. With `isHidden` they still count, and only the list omits them. */
  forget(id: string, isHidden: boolean): Promise<void>;
  /** The caller's jobs, newest first. */
  list(query: ListQuery): Promise<ListedJob[]>;
}

/** The kind of a promise's job, by its tag or else its call. */
export const kindIn = ({ tags, param }: PromiseRecord): string =>
  tags[KIND_TAG] ?? String((decodeValue(param) as { func?: unknown } | undefined)?.func ?? "");

/** The labels in the parameter of a job's promise. */
export function labelsOf(call: unknown): readonly string[] {
  const { labels } = (call ?? {}) as { labels?: unknown };
  return Array.isArray(labels) ? labels.filter((label) => typeof label === "string") : [];
}

/** The record's entry of a job as its promise is stored, for the caller with this key. `startedAt`: when this caller started it. */
export function startedJob(record: PromiseRecord, key: string, startedAt = Date.now()): StartedJob {
  return entryOf(record, key, {
    kind: kindIn(record),
    state: endOf(record),
    startedAt,
    bytes: sizeOf(record),
    labels: labelsOf(decodeValue(record.param)),
  });
}

/** The record's entry of a job from what its promise shows; one that another caller started has no share in the quota. */
export function entryOf(
  { id, createdAt, settledAt, timeoutAt: due, tags }: PromiseRecord,
  key: string,
  { kind, state, startedAt, bytes, labels }: Pick<StartedJob, "kind" | "state" | "startedAt" | "bytes" | "labels">,
): StartedJob {
  const entry = { id, kind, state, startedAt, settledAt: settledAt ?? null, due };
  if (tags[STARTER_TAG] !== undefined && tags[STARTER_TAG] !== key) return { ...entry, ...NO_RESERVATION };
  return { ...entry, startedAt: createdAt, ...reservationIn(tags[RESERVATION_TAG]), bytes, labels };
}
