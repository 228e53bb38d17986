/** The seam of jobs: what a feature does when a job is started, cancelled, looked at or removed. */
import type { Around } from "../around.ts";
import type { Job } from "../author/job.ts";
import type { Requests } from "../resonate/connection/client.ts";
import type { PromiseRecord, Value } from "../resonate/connection/protocol.ts";
import type { CallerRecord } from "./caller-record.ts";
import type { DurablePromise } from "./durable-promise.ts";
import type { JobCall } from "./job-call.ts";
import type { Names } from "./names.ts";
import type { JobsEndpoint } from "./settlements.ts";

/** Who acts through a store. Features add what a request of their own says, by declaration merging. */
export interface Requester {
  /** The caller's key; empty in a deployment without authentication. */
  readonly key: string;
  /** The job whose durable function acts for the caller: its promise id without the namespace. Undefined for the caller itself. */
  readonly parent?: string | undefined;
  /** The id of the request; empty outside of one. */
  readonly requestId: string;
  /** Charges a start for the further jobs that it counts as, which workers start later. Throws when they are too many for now. */
  readonly chargeStarts?: (count: number) => Promise<void>;
}

/** What a feature may use of the store through which a caller acts. */
export interface JobAccess {
  readonly client: Requests;
  readonly endpoint: JobsEndpoint;
  readonly names: Names;
  /** The record of the caller; undefined if it has none. */
  readonly record: CallerRecord | undefined;
  get(name: string, signal?: AbortSignal): Promise<DurablePromise | undefined>;
  /** Reads another promise of a job. */
  child(id: string, signal?: AbortSignal): Promise<PromiseRecord | undefined>;
  /** Cancels a job even if other callers want it. */
  end(promise: DurablePromise): Promise<CancellationOutcome | undefined>;
}

/** The ended attempt that a new one follows, and whether the new one does not repeat its finished steps. */
export interface PreviousAttempt {
  attempt: DurablePromise;
  isResumed: boolean;
}

/** A job that is about to be started, or that a caller joins since it exists. */
export interface JobStart {
  readonly job: Job;
  readonly name: string;
  readonly id: string;
  readonly args: unknown;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly by: Requester;
  readonly previous: PreviousAttempt | undefined;
  /** The job that exists; undefined if its promise is to be created. */
  readonly existing: DurablePromise | undefined;
  /** When the function must have ended, in milliseconds since the epoch. */
  readonly deadline: number;
  /** When the promise times out; a feature may move it back. */
  timeoutAt: number;
  /** What the worker needs. */
  readonly call: JobCall;
  /** The call as it is stored, if a feature has encoded it already. */
  param?: Value;
  /** What others need. */
  readonly tags: Record<string, string>;
  /** The store through which the job is started. */
  readonly jobs: JobAccess;
}

/** The cancellation of a job. */
export interface JobCancellation {
  readonly promise: DurablePromise;
  readonly by: Requester;
  /** Whether the job ends even if other callers want it. */
  readonly isForced: boolean;
  readonly jobs: JobAccess;
}

/** What became of a cancellation: the current promise, and whether this call ended the job. */
export interface CancellationOutcome {
  promise: DurablePromise;
  isOurs: boolean;
}

/** A job whose promise has been read. */
export interface JobLook {
  readonly promise: DurablePromise;
  readonly signal: AbortSignal | undefined;
  readonly jobs: JobAccess;
}

/** The removal of a job, with all generations of its name. */
export interface JobRemoval {
  readonly promise: DurablePromise;
  /** The promise id of the first generation. */
  readonly id: string;
  readonly by: Requester;
  readonly jobs: JobAccess;
}

/** `hidden`: the server cannot remove promises, so the job stays, and only lists omit it. */
export type RemovalOutcome = "forgotten" | "hidden" | "running";

/** What a feature does around the work on a job. */
export interface JobFeature {
  /** Adds to the call and the tags, refuses with {@link NotStarted}, or does something with the promise. */
  start?: Around<JobStart, DurablePromise>;
  /** Undefined if the caller may not cancel the job. */
  cancel?: Around<JobCancellation, CancellationOutcome | undefined>;
  /** Adds what other promises tell about the job. */
  look?: Around<JobLook, DurablePromise>;
  forget?: Around<JobRemoval, RemovalOutcome>;
  /** Whether this feature needs each start to be a job, even one that could be done without. Default: it does not. */
  needsJob?(by: Requester): boolean;
}
