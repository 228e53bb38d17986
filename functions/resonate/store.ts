/** The promises of a deployment's jobs. Nothing else of the edge touches the Resonate server. */
import { Codec, type PromiseRecord } from "@resonatehq/sdk";
import type { Config } from "../config.ts";
import { type AnyJob, type Job, splitGeneration } from "../jobs/job.ts";
import { type Answer, Entry, entryId } from "../jobs/journal.ts";
import { type Channel, Wire } from "./wire.ts";

export { type Channel, ResonateUnavailable } from "./wire.ts";

/** The name of a job is held by a promise that is none of this deployment's. */
export class NameTaken extends Error {
  override name = "NameTaken";
}

/** A job's promise: values decoded, the namespace taken off its id. */
export interface DurablePromise {
  /** The job name, with its generation. */
  name: string;
  job: AnyJob;
  /** The canonical arguments. */
  args: unknown;
  state: PromiseRecord["state"];
  /** What it was resolved with, or the reason it was rejected with. */
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
  timeoutAt: number;
}

/** What was pushed over a channel: that a job's promise, or a child of it, has settled. */
export interface Settled {
  name: string;
  /** Undefined for a child. */
  promise: DurablePromise | undefined;
}

/** An entry of a job's journal: its number, counted from 1, and when it was written; 0 when there is none yet. */
export interface NewestEntry {
  n: number;
  entry: Entry | undefined;
  writtenAt: number;
}

const codec = new Codec();

/**
 * Whatever else lives on the Resonate server is not there: an id that no job could have made, or a promise that calls
 * another function than its job's, is neither read, listened to nor settled.
 *
 * Every method throws {@link ResonateUnavailable} when the server cannot be reached or cannot answer.
 */
export class RemoteStore {
  readonly #wire: Wire;
  readonly #namespace: string;
  readonly #target: string;
  readonly #jobs: readonly AnyJob[];

  constructor(
    config: Pick<Config, "RESONATE_URL" | "RESONATE_TOKEN" | "RESONATE_GROUP" | "RESONATE_NAMESPACE">,
    jobs: readonly AnyJob[],
  ) {
    this.#wire = new Wire(config.RESONATE_URL, config.RESONATE_TOKEN);
    this.#namespace = config.RESONATE_NAMESPACE;
    this.#target = `poll://any@${config.RESONATE_GROUP}`;
    this.#jobs = jobs;
  }

  /**
   * Creates the promise `name` with the worker group as its target, or returns the one already there.
   *
   * @throws {NameTaken}
   */
  async create<Args>(job: Job<Args>, name: string, args: Args, now: number): Promise<DurablePromise> {
    const id = this.#id(name);
    const record = await this.#wire.call({
      kind: "promise.create",
      data: {
        id,
        timeoutAt: job.deadline(args, now),
        param: codec.encode({ func: job.func, args: [args], version: 1 }),
        tags: { ...lineage(id, id), "resonate:target": this.#target },
      },
    });
    const promise = record && this.#decode(record);
    if (!promise) throw new NameTaken(name);
    return promise;
  }

  /** The promise `name`, or undefined. */
  async get(name: string, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    if (!this.#jobOf(name)) return undefined;
    const record = await this.#wire.call({ kind: "promise.get", data: { id: this.#id(name) } }, signal);
    return record && this.#decode(record);
  }

  /** Cancels the promise `name` unless it has settled, and returns it as it then is; undefined when there is none. */
  async cancel(name: string): Promise<DurablePromise | undefined> {
    if (!(await this.get(name))) return undefined;
    const record = await this.#wire.call({
      kind: "promise.settle",
      data: { id: this.#id(name), state: "rejected_canceled", value: codec.encode(undefined) },
    });
    return record && this.#decode(record);
  }

  /**
   * Asks for the settlement of `name` to be pushed to `channel`, and returns the promise as it is: a settled one is
   * not pushed. Undefined when there is none, or none that can be listened to.
   */
  async listen(name: string, channel: Channel, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    if (!this.#jobOf(name)) return undefined;
    const record = await this.#listen(this.#id(name), channel, signal);
    return record && this.#decode(record);
  }

  /** Opens a connection that settlements are pushed over. A lost one is not reopened: see {@link Channel.closed}. */
  open(onSettled: (settled: Settled) => void, signal: AbortSignal): Promise<Channel> {
    return this.#wire.open((record) => {
      const [id = "", child] = record.id.split(":", 2);
      const name = id.slice(this.#namespace.length);
      onSettled({ name, promise: child === undefined ? this.#decode(record) : undefined });
    }, signal);
  }

  /** Whether the server says that it is ready. */
  ready(): Promise<void> {
    return this.#wire.ready();
  }

  /** The newest entry of a job's journal. */
  async newestEntry(name: string, signal?: AbortSignal): Promise<NewestEntry> {
    let newest: NewestEntry = { n: 0, entry: undefined, writtenAt: 0 };
    let missing = Number.POSITIVE_INFINITY;
    while (newest.n + 1 < missing) {
      const n = missing === Number.POSITIVE_INFINITY ? newest.n * 2 || 1 : Math.floor((newest.n + missing) / 2);
      const record = await this.#wire.call({ kind: "promise.get", data: { id: entryId(this.#id(name), n) } }, signal);
      if (record?.state === "resolved") {
        newest = { n, entry: Entry.parse(decodeValue(record.value)), writtenAt: record.settledAt ?? 0 };
      } else missing = n;
    }
    return newest;
  }

  /**
   * Writes the `n`th entry of the journal of the promise `promiseId`; one that is written already stays as it is.
   * `timeoutAt` is the promise's.
   */
  async writeEntry(promiseId: string, n: number, entry: Entry, timeoutAt: number): Promise<void> {
    const id = entryId(promiseId, n);
    await this.#createEntry(promiseId, id, timeoutAt);
    await this.#wire.call({ kind: "promise.settle", data: { id, state: "resolved", value: codec.encode(entry) } });
  }

  /** Asks for the `n`th entry of a job's journal to be pushed when it is written. Whether it has been already. */
  async listenToEntry(promise: DurablePromise, n: number, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    const origin = this.#id(promise.name);
    const id = entryId(origin, n);
    await this.#createEntry(origin, id, promise.timeoutAt, signal);
    return (await this.#listen(id, channel, signal))?.state !== "pending";
  }

  /** When a question was answered, in milliseconds since the epoch; undefined while it is open. */
  async answeredAt(questionId: string, signal?: AbortSignal): Promise<number | undefined> {
    const record = await this.#wire.call({ kind: "promise.get", data: { id: questionId } }, signal);
    return record?.state === "pending" ? undefined : (record?.settledAt ?? 0);
  }

  /** Asks for the answer to a question to be pushed. Whether it has been given already. */
  async listenToQuestion(questionId: string, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    return (await this.#listen(questionId, channel, signal))?.state !== "pending";
  }

  /** Answers a question; of several answers the first one counts. */
  async answer(questionId: string, answer: Answer): Promise<void> {
    await this.#wire.call({
      kind: "promise.settle",
      data: { id: questionId, state: "resolved", value: codec.encode(answer) },
    });
  }

  async #createEntry(origin: string, id: string, timeoutAt: number, signal?: AbortSignal): Promise<void> {
    const data = { id, timeoutAt, param: codec.encode(undefined), tags: lineage(origin, id) };
    await this.#wire.call({ kind: "promise.create", data }, signal);
  }

  #listen(id: string, channel: Channel, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    const data = { awaited: id, address: channel.address };
    return this.#wire.call({ kind: "promise.register_listener", data }, signal);
  }

  #id(name: string): string {
    return this.#namespace + name;
  }

  #jobOf(name: string): AnyJob | undefined {
    const { base } = splitGeneration(name);
    return this.#jobs.find((job) => job.owns(base));
  }

  /** The promise a record stands for, or undefined when it is foreign. */
  #decode(record: PromiseRecord): DurablePromise | undefined {
    const name = record.id.slice(this.#namespace.length);
    const job = this.#jobOf(name);
    const param = decodeValue(record.param) as { func?: unknown; args?: unknown[] } | undefined;
    if (!job || param?.func !== job.func) return undefined;
    return {
      name,
      job,
      args: param.args?.[0],
      state: record.state,
      value: decodeValue(record.value),
      createdAt: record.createdAt,
      settledAt: record.settledAt,
      timeoutAt: record.timeoutAt,
    };
  }
}

/** The tags that make a promise `id` part of what `origin` started, and one that can be listened to. */
function lineage(origin: string, id: string): Record<string, string> {
  return {
    "resonate:origin": origin,
    "resonate:branch": id,
    "resonate:parent": origin,
    "resonate:scope": "global",
  };
}

/** A value nobody here wrote may be undecodable; it is then no value of ours. */
function decodeValue(value: PromiseRecord["value"]): unknown {
  try {
    return codec.decode(value);
  } catch {
    return undefined;
  }
}
