/** Which promise is which job of which caller. */
import { type Job, REQUEST_TAG, splitGeneration, VERSION_TAG } from "../definitions/job.ts";
import { type DurablePromise, decodeValue, KEEP, PLACE, STARTER } from "../store/codec.ts";
import type { PromiseRecord } from "../store/protocol.ts";

/** The id of the job's promise that a promise belongs to: the same, or that of which it is a child. */
export const rootOf = (id: string): string => id.split(":", 1)[0] ?? "";

/** What a job's promise holds. */
interface Call {
  func: unknown;
  args: unknown[];
}

/**
 * The names of one caller. A promise id is the deployment's namespace, the caller's key unless the job is shared, and
 * the job name: another caller's job has an id that no name of this caller leads to.
 */
export class Names {
  readonly jobs: readonly Job[];
  readonly #namespace: string;
  readonly #key: string;

  constructor(jobs: readonly Job[], namespace: string, key: string) {
    this.jobs = jobs;
    this.#namespace = namespace;
    this.#key = key;
  }

  /** What the caller's promises are tagged with, to be found by. */
  get owner(): string {
    return `${this.#namespace}${this.#key || "anyone"}`;
  }

  id(job: Pick<Job, "shared">, name: string): string {
    return this.#namespace + (job.shared ? "" : this.#key) + name;
  }

  /** The id of the promise that `name` names; undefined for a name that no job could have. */
  idOf(name: string): string | undefined {
    const job = this.named(name);
    return job && this.id(job, name);
  }

  /** The id of one of the caller's places for jobs; no job has such a name. */
  quotaId(place: string): string {
    return `${this.#namespace}${this.#key}quota:${place}`;
  }

  /** The id of a part of the caller's list of jobs; no job has such a name. */
  listId(part: string): string {
    return `${this.#namespace}${this.#key}list:${part}`;
  }

  /** Whether these are the names of a deployment that does not tell callers apart. */
  get isAnyone(): boolean {
    return this.#key === "";
  }

  /** The job that a name is of; undefined for no job's name. */
  named(name: string): Job | undefined {
    const { base } = splitGeneration(name);
    return this.jobs.find((job) => job.owns(base));
  }

  /** A promise id without the namespace. */
  local(id: string): string {
    return id.slice(this.#namespace.length);
  }

  /** The job name in a promise id. */
  nameIn(id: string): string {
    const local = this.local(id);
    return local.startsWith(this.#key) ? local.slice(this.#key.length) : local;
  }

  /** The job whose promise has this id, with its name; undefined when it is none of this caller's. */
  find(id: string): { name: string; job: Job } | undefined {
    const name = this.nameIn(id);
    const job = this.named(name);
    return job && this.id(job, name) === id ? { name, job } : undefined;
  }

  /**
   * The promise that a record stands for, or undefined when it is foreign. `sent` is what the record would hold if it
   * was created just now, or was for the same arguments before: most are, and need no decoding.
   */
  decode(record: PromiseRecord, sent?: { param: PromiseRecord["param"]; call: Call }): DurablePromise | undefined {
    const found = this.find(record.id);
    const isAsSent = sent !== undefined && record.param.data === sent.param.data;
    const param = isAsSent ? sent.call : (decodeValue(record.param) as Partial<Call> | undefined);
    if (!found || param?.func !== found.job.kind) return undefined;
    return {
      ...found,
      id: record.id,
      args: param.args?.[0],
      ...outcomeOf(found.job, record),
      createdAt: record.createdAt,
      settledAt: record.settledAt,
      timeoutAt: record.timeoutAt,
      starter: record.tags[STARTER],
      request: record.tags[REQUEST_TAG],
      place: record.tags[PLACE],
      keep: record.tags[KEEP],
      version: Number(record.tags[VERSION_TAG] ?? 0),
    };
  }
}

/**
 * How a promise stands, and its value. This project's workers hold results against the definition; workers of another group
 * may be written with anything, so that their results are held against it here: one that does not fit is a failure.
 */
function outcomeOf(job: Job, record: PromiseRecord): Pick<DurablePromise, "state" | "value"> {
  const value = decodeValue(record.value);
  if (record.state !== "resolved" || job.group === undefined || !job.result) return { state: record.state, value };
  const { error } = job.result.safeParse(value);
  if (!error) return { state: record.state, value };
  const [{ path, message } = { path: [], message: "" }] = error.issues;
  const words = `the worker's result does not fit the tool's output${path.length > 0 ? ` at ${path.join(".")}` : ""}: ${message}`;
  return { state: "rejected", value: new Error(words) };
}
