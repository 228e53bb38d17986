import { type Job, VERSION_TAG } from "../author/job.ts";
import { CALLER_TAG, decodeStrictly, decodeValue } from "../resonate/codec.ts";
import type { PromiseRecord, Value } from "../resonate/connection/protocol.ts";
import { endOf } from "../resonate/deadline.ts";
import { localId, oneForm, splitGeneration } from "../resonate/ids.ts";
import { KIND_TAG } from "./caller-record.ts";
import type { DurablePromise, StoredCall } from "./durable-promise.ts";
import type { JobCall } from "./job-call.ts";

/** A job whose promise is created: its call, and the parameter that encodes the call. */
export interface CreatedJob {
  job: Job;
  name: string;
  param: Value;
  call: JobCall;
}

/**
 * Maps the job names of one caller to promise ids and back. The id holds the caller's key unless the job is shared, so no
 * name of this caller leads to another caller's job.
 */
export class Names {
  readonly jobs: readonly Job[];
  /** The value of the tag by which the caller's promises are found. */
  readonly owner: string;
  readonly #namespace: string;
  readonly #key: string;

  constructor(jobs: readonly Job[], namespace: string, key: string) {
    this.jobs = jobs;
    this.#namespace = namespace;
    this.#key = key;
    this.owner = `${namespace}${key || "anyone"}`;
  }

  /** The tags by which the caller's jobs of a kind are found. */
  ownerTags(kind: string): Record<string, string> {
    return { [CALLER_TAG]: this.owner, [KIND_TAG]: kind };
  }

  id(job: Pick<Job, "shared">, name: string): string {
    return this.#namespace + (job.shared ? "" : this.#key) + oneForm(name);
  }

  /** The promise id of `name`; undefined for a name that no job can have. */
  idOf(name: string): string | undefined {
    const job = this.named(name);
    return job && this.id(job, name);
  }

  /** The definition that a name belongs to; undefined for a name that no job can have. */
  named(name: string): Job | undefined {
    const { base } = splitGeneration(oneForm(name));
    return this.jobs.find((job) => job.owns(base));
  }

  /** The promise id of a job in the caller's list, which may be of a kind that this deployment does not have. */
  idInList(name: string): string {
    return this.id(this.named(name) ?? { shared: false }, name);
  }

  local(id: string): string {
    return localId(id, this.#namespace);
  }

  nameIn(id: string): string {
    const local = this.local(id);
    return local.startsWith(this.#key) ? local.slice(this.#key.length) : local;
  }

  /** The job with this promise id, and its name; undefined for an id that no job of this caller has. */
  find(id: string): { name: string; job: Job } | undefined {
    const name = this.nameIn(id);
    const job = this.named(name);
    return job && this.id(job, name) === id ? { name, job } : undefined;
  }

  /** Decodes a record; undefined if it is not a job of this caller. */
  decode(record: PromiseRecord): DurablePromise | undefined {
    const found = this.find(record.id);
    const call = found && callIn(found.job, record.param);
    return call && call.func === found.job.kind ? promiseOf(found, record, call) : undefined;
  }

  /** The same for a record that answers a creation. One with the parameter that was sent needs no decoding. */
  decodeCreated(record: PromiseRecord, { job, name, call, param }: CreatedJob): DurablePromise | undefined {
    return record.param.data === param.data ? promiseOf({ job, name }, record, call) : this.decode(record);
  }
}

/** The call in a parameter. One that cannot be decoded has no arguments: its job can still be looked at, cancelled and removed. */
function callIn(job: Job, param: Value): StoredCall | undefined {
  try {
    return decodeStrictly(param) as StoredCall | undefined;
  } catch {
    return { func: job.kind };
  }
}

function promiseOf(found: { job: Job; name: string }, record: PromiseRecord, call: StoredCall): DurablePromise {
  const { headers } = record.value;
  return {
    ...found,
    id: record.id,
    args: call.args?.[0],
    call,
    ...(record.state === "pending" ? NO_OUTCOME : outcomeOf(found.job, record)),
    createdAt: record.createdAt,
    settledAt: record.settledAt,
    timeoutAt: record.timeoutAt,
    deadline: record.timeoutAt - (Number(call.cleanup) || 0),
    version: Number(record.tags[VERSION_TAG] ?? 0),
    // Without its data, which would be in memory twice.
    record: { ...record, param: {}, value: headers ? { headers } : {} },
    characters: (record.param.data?.length ?? 0) + (record.value.data?.length ?? 0),
    omitted: record.omitted,
  };
}

const NO_OUTCOME = { state: "pending", value: undefined } as const;

/**
 * The state and value of a promise. This project's workers check results against the definition themselves. Workers of another
 * group may be written in any way, so their results are checked here, and a result that does not fit becomes a failure. A result
 * of another version of the definition is not checked: it was complete by the schema of its time.
 */
function outcomeOf(job: Job, record: PromiseRecord): Pick<DurablePromise, "state" | "value"> {
  const value = decodeValue(record.value);
  const isOfThisVersion = Number(record.tags[VERSION_TAG] ?? job.version) === job.version;
  const isRead = record.state === "resolved" && record.omitted === undefined;
  if (!isRead || job.group === undefined || !job.result || !isOfThisVersion) return { state: endOf(record), value };
  const { error } = job.result.safeParse(value);
  if (!error) return { state: record.state, value };
  const [{ path, message } = { path: [], message: "" }] = error.issues;
  const words = `the worker's result does not fit the tool's output${path.length > 0 ? ` at ${path.join(".")}` : ""}: ${message}`;
  return { state: "rejected", value: new Error(words) };
}
