import type { Job } from "../definitions/job.ts";
import { STARTER } from "../store/codec.ts";
import type { PromiseRecord } from "../store/connection/protocol.ts";
import { splitKey } from "../store/ids.ts";

/** A job's promise: values decoded, the namespace and the caller's key taken off its name. */
export interface DurablePromise {
  id: string;
  /** The job name, with its generation. */
  name: string;
  job: Job;
  /** The canonical arguments. */
  args: unknown;
  state: PromiseRecord["state"];
  /** The value that resolved it, or the reason that rejected it. */
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
  /** When the promise times out: the deadline, and the time for the clean-up that follows it. */
  timeoutAt: number;
  deadline: number;
  /** Who created the promise of a shared job: a caller's key, or a durable function. */
  starter: string | undefined;
  request: string | undefined;
  /** Its quota reservation. */
  reservation: string | undefined;
  /** What is stored of it, in bytes. */
  bytes: number;
  /** The labels that are stored with it: none of a job that several callers share. */
  labels: readonly string[];
  /** For how long it is kept after its end, where its definition says so: milliseconds, or `forever`. */
  keep: string | undefined;
  version: number;
  /** The name of the attempt before, where this one was asked to go on from it. */
  earlier: string | undefined;
  /** What its worker made of that: see {@link Resumption}. */
  resumption?: Resumption;
  /** The clean-up of a cancelled job, as its promise is. */
  cleanup?: Pick<PromiseRecord, "state"> & { value: unknown };
  /** What a start has to say about the job that it found. */
  note?: string;
}

/** How an attempt that was asked to resume began: with the finished steps of the attempt before, or from the start and why. */
export type Resumption = { from: string } | { anew: string };

/** The key of the caller for whom a job was started, by its id without the namespace; empty where there is none. */
export const ownerOf = (name: string, { tags }: Pick<PromiseRecord, "tags">): string =>
  splitKey(name).key || splitKey(tags[STARTER] ?? "").key;
