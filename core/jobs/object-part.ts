/**
 * The seam of a caller's object: a part of it, which a feature keeps there. All parts of an object share its storage, so that what
 * they write in the same transaction is stored together or not at all.
 */
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { ObjectSql, Row } from "../resonate/object-storage.ts";
import type { StartedJob } from "./caller-record.ts";
import type { ReportedJob } from "./reports.ts";

/** The tables of a part. */
export interface PartTables {
  /** Raised with each change of the tables. */
  readonly version: number;
  /** SQL that creates them. Triggers may be on tables of the parts before it in the list. */
  readonly statements: readonly string[];
  /** The names of the tables that a backup copies, in the order in which they are restored. Others are derived from them. */
  readonly copied: readonly string[];
  /** Empties them for another content. Default: all rows of the copied tables are deleted. */
  clear?(): void;
  /** How a row of a table is restored, instead of being inserted. */
  readonly restore?: Readonly<Record<string, (row: Row, now: number) => void>>;
}

/** A remote method of an object. */
// oxlint-disable-next-line typescript/no-explicit-any -- the two sides of a call share the type of its methods
export type PartMethod = (...args: any[]) => unknown;

/** A part of an object. One that the configuration does not ask for is not in the object's list. */
export interface ObjectPart {
  readonly name: string;
  readonly tables?: PartTables;
  /** Its remote methods. No other part of the object has a method of the same name. */
  readonly methods?: Readonly<Record<string, PartMethod>>;
  /** When it has work to do, in milliseconds since the epoch; infinite without work. */
  nextAt?(): number;
  /** Does what is due. It is called at every alarm, so it may also find that nothing is. */
  run?(now: number): Promise<unknown> | unknown;
  /** Refuses a job that the caller wants to start, in words; called in the transaction that would enter it, if there are limits. */
  refuse?(job: StartedJob): string | undefined;
  /** Called in the transaction that enters a job which is about to be started. */
  onStart?(job: StartedJob): void;
  /** Called before the ends of jobs are recorded. */
  beforeEnd?(jobs: readonly StartedJob[]): Promise<void>;
  /** Called in the transaction that records the end of a job which the caller has started. */
  onEnd?(job: StartedJob): void;
  /** Called when what was seen of jobs has been recorded. */
  afterNote?(): void;
  /** Called when all generations of a job have been removed; `id` is the promise id of the first. It must not reject. */
  onForget?(id: string): Promise<void>;
  /** Reads what it caches: once its tables exist, and after the stored rows were replaced. */
  load?(): void;
}

/** An object, as its parts see it. */
export interface PartHost {
  readonly sql: ObjectSql;
  /** All parts, in the order of the list. */
  readonly parts: readonly ObjectPart[];
  /** Sets the alarm to the earliest time at which a part has work: soon, once for all changes of the moment. */
  arm(): Promise<void>;
  /** The arming that is about to be done; undefined without one. */
  readonly armed: Promise<void> | undefined;
  /** Deletes everything that the parts store. */
  clear(): void;
}

/** The jobs in the record of a caller. */
export interface RecordedJobs {
  /** The bytes that are stored of all jobs. */
  readonly stored: number;
  /** Jobs that are not known to have ended, the earliest due first. */
  pending(limit: number): string[];
  /** The same, those first that are due for a look; others only if they were looked at until `before`. */
  leastSeen(now: number, limit: number, before?: number): string[];
  /** When the next open job is due for a look, and when the one looked at longest ago was; infinite without an open job. */
  nextLook(): { due: number; oldest: number };
  kindOf(id: string): string | undefined;
  labelsOf(id: string): string[];
  /** Notes which schedule has started a job, by the job name of its first generation. */
  noteFiring(id: string, schedule: string): void;
  /** Whether a schedule has started one of these jobs. */
  isFired(ids: readonly string[]): boolean;
  transaction<T>(work: () => T): T;
}

/** The record of a caller's jobs, as other parts of the object see it. */
export interface ObjectRecord {
  /** The caller's key; empty while it is not known, and for callers without identity. */
  readonly key: string;
  /** Whether the object has been told whose it is. */
  readonly isBegun: boolean;
  readonly jobs: RecordedJobs;
  /** Begins the record of a caller, unless it has begun. */
  begin(key: string): Promise<void>;
  /** The name of a job, by its promise id. */
  nameOf(id: string): string;
  /** A named value in the object's storage. */
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  /** Reads the state of jobs and records it. Resolves with their promises, in the order of the jobs. */
  refresh(jobs: readonly ReportedJob[]): Promise<(PromiseRecord | undefined)[]>;
  /** Records the state of a job whose promise has been read. */
  noteRecord(record: PromiseRecord): Promise<void>;
}
