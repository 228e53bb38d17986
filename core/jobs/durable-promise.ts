import type { Job } from "../author/job.ts";
import { decodeValue, PARENT_TAG, RESUMES_TAG, STARTER_TAG } from "../resonate/codec.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { resumptionId, splitKey } from "../resonate/ids.ts";

/** A call as it is stored. Other clients of the server may write it in any way. */
export interface StoredCall {
  func?: unknown;
  args?: readonly unknown[];
  /** How long the promise outlives the job's deadline, to leave time for a clean-up, in milliseconds. */
  cleanup?: number;
}

/** A job's promise with decoded values, and a name without the namespace and the caller's key. */
export interface DurablePromise {
  id: string;
  /** The job name, with its generation. */
  name: string;
  job: Job;
  /** The canonical arguments. */
  args: unknown;
  /** The call that its promise was created with. */
  call: StoredCall;
  state: PromiseRecord["state"];
  /** The value that resolved it, or the reason that rejected it. */
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
  /** When the promise times out: the deadline plus the time for the clean-up that follows it. */
  timeoutAt: number;
  deadline: number;
  version: number;
  /** How an attempt began that was to resume an earlier one: see {@link Resumption}. */
  resumption?: { from: string } | { anew: string };
  /** The state and value of a cancelled job's clean-up. */
  cleanup?: Pick<PromiseRecord, "state"> & { value: unknown };
  /** A start's remark on the job that it found. */
  note?: string;
  /** Without its data. */
  record: PromiseRecord;
  /** The length of its parameter and value as they are stored, in characters of base64. */
  characters: number;
  /** The length of a value that the server has left out, in characters of base64. */
  omitted?: number | undefined;
}

/**
 * How an attempt that was asked to resume began: after the finished steps of `from` and with the random values of its last run, or
 * from the start, as `anew` explains.
 */
export type Resumption = { from: string; seed: string } | { anew: string };

/** The seed of a job whose call has none, as it comes from another Resonate client: its random values can be guessed. */
export const seedOf = ({ id, createdAt }: PromiseRecord): string => `${id} ${createdAt}`;

/** The seed with which a job's first run began: its own, or that of the attempt which it resumed. */
export async function firstSeed(
  job: PromiseRecord,
  get: (id: string) => Promise<PromiseRecord | undefined>,
): Promise<string> {
  const record = job.tags[RESUMES_TAG] === undefined ? undefined : await get(resumptionId(job.id));
  const resumption = record && (decodeValue(record.param) as Resumption);
  if (resumption && "from" in resumption) return resumption.seed;
  return (decodeValue(job.param) as { seed?: string } | undefined)?.seed ?? seedOf(job);
}

/** The key of the caller for whom a job was started; empty if there is none. `name` is the job's id without the namespace. */
export const ownerOf = (name: string, { tags }: Pick<PromiseRecord, "tags">): string =>
  splitKey(name).key || splitKey(tags[STARTER_TAG] ?? "").key;

/** The job whose function started this one, by its promise id without the namespace; undefined if a caller started it. */
export function parentOf({ tags }: Pick<PromiseRecord, "tags">): string | undefined {
  const starter = tags[PARENT_TAG] ?? tags[STARTER_TAG];
  return starter !== undefined && splitKey(starter).name !== "" ? starter : undefined;
}
