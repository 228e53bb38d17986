/** Which promise is which job of which caller. */
import type { PromiseRecord } from "@resonatehq/sdk";
import { splitKey } from "../caller.ts";
import { type AnyJob, REQUEST_TAG, splitGeneration } from "../jobs/job.ts";
import { type DurablePromise, decodeValue, STARTER } from "./promise.ts";

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
  readonly jobs: readonly AnyJob[];
  readonly #namespace: string;
  readonly #key: string;

  constructor(jobs: readonly AnyJob[], namespace: string, key: string) {
    this.jobs = jobs;
    this.#namespace = namespace;
    this.#key = key;
  }

  /** What the caller's promises are tagged with, to be found by. */
  get owner(): string {
    return `${this.#namespace}${this.#key || "anyone"}`;
  }

  id(job: Pick<AnyJob, "shared">, name: string): string {
    return this.#namespace + (job.shared ? "" : this.#key) + name;
  }

  /** The id of the promise that `name` names; undefined for a name that no job could have. */
  idOf(name: string): string | undefined {
    const job = this.#jobOf(name);
    return job && this.id(job, name);
  }

  /** The id of one of the caller's places for jobs; no job has such a name. */
  quotaId(place: string): string {
    return `${this.#namespace}${this.#key}quota:${place}`;
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
  find(id: string): { name: string; job: AnyJob } | undefined {
    const name = this.nameIn(id);
    const job = this.#jobOf(name);
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
    if (!found || param?.func !== found.job.func) return undefined;
    return {
      ...found,
      args: param.args?.[0],
      state: record.state,
      value: decodeValue(record.value),
      createdAt: record.createdAt,
      settledAt: record.settledAt,
      timeoutAt: record.timeoutAt,
      starter: record.tags[STARTER],
      request: record.tags[REQUEST_TAG],
    };
  }

  /** Whether a promise is a caller's own, of whatever caller. */
  isOwned(id: string): boolean {
    return splitKey(this.local(id)).key !== "";
  }

  #jobOf(name: string): AnyJob | undefined {
    const { base } = splitGeneration(name);
    return this.jobs.find((job) => job.owns(base));
  }
}
