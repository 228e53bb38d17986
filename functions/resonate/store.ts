/** The promises of a deployment's jobs. Nothing else of the edge touches the Resonate server. */
import type { PromiseRecord } from "@resonatehq/sdk";
import type { Caller } from "../caller.ts";
import type { Config } from "../config.ts";
import { type AnyJob, type Job, REQUEST_TAG } from "../jobs/job.ts";
import { type Answer, Entry, entryId } from "../jobs/journal.ts";
import { Claims, startRecordId } from "./claims.ts";
import { Names } from "./names.ts";
import { findOwn, type OwnJob, ownTags } from "./own.ts";
import { type DurablePromise, decodeValue, encodeValue, lineage, STARTER } from "./promise.ts";
import { QuotaExceeded, takePlace } from "./quota.ts";
import { type Channel, Wire } from "./wire.ts";

export type { OwnJob } from "./own.ts";
export type { DurablePromise } from "./promise.ts";
export { QuotaExceeded } from "./quota.ts";
export { type Channel, ResonateUnavailable, SearchRefused } from "./wire.ts";

/** The name of a job is held by a promise that is none of this deployment's. */
export class NameTaken extends Error {
  override name = "NameTaken";
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

type StoreConfig = Pick<Config, "RESONATE_URL" | "RESONATE_TOKEN" | "RESONATE_GROUP" | "RESONATE_NAMESPACE">;

/** For whom a store acts. */
interface Scope {
  /** The caller's. */
  key: string;
  /** In whose name it claims shared jobs; empty where they are everybody's. */
  claimant: string;
  /** How many jobs of each length the caller may start in that length of time; 0 for any number. */
  quota: number;
  /** The id of the request that is being answered; empty outside of one. */
  request: string;
}

/**
 * Whatever else lives on the Resonate server is not there: an id that no job could have made, a promise that calls
 * another function than its job's, or a job that is another caller's is neither read, listened to nor settled.
 *
 * Every method throws {@link ResonateUnavailable} when the server cannot be reached or cannot answer.
 */
export class RemoteStore {
  readonly #config: StoreConfig;
  readonly #scope: Scope;
  readonly #names: Names;
  readonly #wire: Wire;

  constructor(
    config: StoreConfig,
    jobs: readonly AnyJob[],
    { key = "", claimant = "", quota = 0, request = "" }: Partial<Scope> = {},
    wire = new Wire(config.RESONATE_URL, config.RESONATE_TOKEN),
  ) {
    this.#config = config;
    this.#scope = { key, claimant, quota, request };
    this.#names = new Names(jobs, config.RESONATE_NAMESPACE, key);
    this.#wire = wire;
  }

  /** The same store for one caller, and for one request of his where it is given. */
  as({ key }: Caller, request = ""): RemoteStore {
    return key === "" && request === "" ? this : this.#scoped({ ...this.#scope, key, claimant: key, request });
  }

  /** The same store for the durable function whose promise is `promiseId`, if that is a caller's own. */
  onBehalfOf(promiseId: string): RemoteStore {
    return this.#names.isOwned(promiseId)
      ? this.#scoped({ key: "", claimant: this.#names.local(promiseId), quota: 0, request: "" })
      : this;
  }

  /** What a job is called in logs, where callers are not kept apart: its promise id without the namespace. */
  logName(name: string): string {
    return this.#names.local(this.#names.idOf(name) ?? "");
  }

  /**
   * Creates the promise `name` with the worker group as its target, or returns the one already there.
   *
   * @throws {NameTaken}
   * @throws {QuotaExceeded} when there is none, and the caller has too many jobs under way
   */
  async create<Args>(job: Job<Args>, name: string, args: Args, now: number): Promise<DurablePromise> {
    await this.#admit(job, name, args, now);
    const timeoutAt = job.deadline(args, now);
    if (!this.#claims(job)) return this.#create(job, name, args, timeoutAt, ownTags(this.#names, job));
    const tags = { [STARTER]: this.#scope.claimant };
    const [promise, record] = await Promise.all([
      this.#create(job, name, args, timeoutAt, tags),
      this.#recordStart(job, name, timeoutAt),
    ]);
    return this.#claim(promise, record);
  }

  /** Makes a job that was found one that this caller started. Returns it as it is then. */
  async join(promise: DurablePromise): Promise<DurablePromise> {
    if (!this.#claims(promise.job)) return promise;
    return this.#claim(promise, await this.#recordStart(promise.job, promise.name, promise.timeoutAt));
  }

  /** The promise `name`, or undefined. */
  async get(name: string, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    const id = this.#names.idOf(name);
    if (id === undefined) return undefined;
    const record = await this.#wire.call({ kind: "promise.get", data: { id } }, signal);
    return record && this.#names.decode(record);
  }

  /**
   * Cancels the promise `name` unless it has settled, and returns it as it then is; undefined when there is none, or
   * none that this caller started. One that others started too is given up, and goes on.
   */
  async cancel(name: string): Promise<DurablePromise | undefined> {
    const promise = await this.get(name);
    if (!promise) return undefined;
    const id = this.#names.id(promise.job, name);
    const { key } = this.#scope;
    if (promise.job.shared && key !== "") {
      const started = await this.#wire.call({ kind: "promise.get", data: { id: startRecordId(id, key) } });
      if (!started) return undefined;
      if (promise.state !== "pending") return promise;
      if (!(await new Claims(this.#wire, id, promise.timeoutAt).giveUp(key, promise.starter))) return promise;
    }
    return this.#cancel(id);
  }

  /**
   * Asks for the settlement of `name` to be pushed to `channel`, and returns the promise as it is: a settled one is
   * not pushed. Undefined when there is none, or none that can be listened to.
   */
  async listen(name: string, channel: Channel, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    const id = this.#names.idOf(name);
    if (id === undefined) return undefined;
    const record = await this.#listen(id, channel, signal);
    return record && this.#names.decode(record);
  }

  /** Opens a connection that settlements are pushed over. A lost one is not reopened: see {@link Channel.closed}. */
  open(onSettled: (settled: Settled) => void, signal: AbortSignal): Promise<Channel> {
    return this.#wire.open((record) => {
      const [id = "", child] = record.id.split(":", 2);
      onSettled({
        name: this.#names.nameIn(id),
        promise: child === undefined ? this.#names.decode(record) : undefined,
      });
    }, signal);
  }

  /** Whether the server says that it is ready. */
  ready(): Promise<void> {
    return this.#wire.ready();
  }

  /**
   * The jobs that this caller started, of one kind or of all, in no order; `complete` is false when there are more than
   * are looked at.
   *
   * @throws {SearchRefused}
   */
  own(kind: string | undefined, signal?: AbortSignal): Promise<{ jobs: OwnJob[]; complete: boolean }> {
    return findOwn(this.#wire, this.#names, kind, signal);
  }

  /** The newest entry of a job's journal. */
  async newestEntry(name: string, signal?: AbortSignal): Promise<NewestEntry> {
    let newest: NewestEntry = { n: 0, entry: undefined, writtenAt: 0 };
    let missing = Number.POSITIVE_INFINITY;
    const origin = this.#names.idOf(name);
    while (origin !== undefined && newest.n + 1 < missing) {
      const n = missing === Number.POSITIVE_INFINITY ? newest.n * 2 || 1 : Math.floor((newest.n + missing) / 2);
      const record = await this.#wire.call({ kind: "promise.get", data: { id: entryId(origin, n) } }, signal);
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
    await this.#createChild(promiseId, id, timeoutAt);
    await this.#wire.call({ kind: "promise.settle", data: { id, state: "resolved", value: encodeValue(entry) } });
  }

  /** Asks for the `n`th entry of a job's journal to be pushed when it is written. Whether it has been already. */
  async listenToEntry(promise: DurablePromise, n: number, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    const origin = this.#names.id(promise.job, promise.name);
    const id = entryId(origin, n);
    await this.#createChild(origin, id, promise.timeoutAt, {}, signal);
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
    const value = encodeValue(answer);
    await this.#wire.call({ kind: "promise.settle", data: { id: questionId, state: "resolved", value } });
  }

  /** Whether the job is one that others may want as well. */
  #claims(job: Pick<AnyJob, "shared">): boolean {
    return job.shared === true && this.#scope.claimant !== "";
  }

  async #recordStart(job: AnyJob | Job<never>, name: string, timeoutAt: number): Promise<PromiseRecord | undefined> {
    const { key } = this.#scope;
    if (key === "") return undefined;
    const id = this.#names.id(job, name);
    return this.#createChild(id, startRecordId(id, key), timeoutAt, ownTags(this.#names, job));
  }

  /** Sees to it that nobody else cancels a shared job. Returns it as it is then. */
  async #claim(promise: DurablePromise, record: PromiseRecord | undefined): Promise<DurablePromise> {
    const { claimant } = this.#scope;
    // Whoever starts it again after giving it up is one of those who claim it.
    const isStarter = promise.starter === claimant && record?.state !== "resolved";
    if (promise.state !== "pending" || isStarter) return promise;
    const id = this.#names.id(promise.job, promise.name);
    const isClaimed = await new Claims(this.#wire, id, promise.timeoutAt).claim(claimant);
    return isClaimed ? promise : ((await this.#cancel(id)) ?? promise);
  }

  /** @throws {QuotaExceeded} for a job that is not there, when the caller has too many */
  async #admit<Args>(job: Job<Args>, name: string, args: Args, now: number): Promise<void> {
    const { quota } = this.#scope;
    if (quota === 0) return;
    const duration = (job.expectedAt?.(args) ?? job.deadline(args, now)) - now;
    try {
      await takePlace(this.#wire, this.#names, quota, { id: this.#names.id(job, name), duration, now });
    } catch (error) {
      if (!(error instanceof QuotaExceeded) || !(await this.get(name))) throw error;
    }
  }

  async #create<Args>(
    job: Job<Args>,
    name: string,
    args: Args,
    timeoutAt: number,
    tags: Record<string, string>,
  ): Promise<DurablePromise> {
    const id = this.#names.id(job, name);
    const call = { func: job.func, args: [args], version: 1 };
    const param = encodeValue(call);
    const target = { "resonate:target": `poll://any@${this.#config.RESONATE_GROUP}` };
    const { request } = this.#scope;
    const log = request === "" ? {} : { [REQUEST_TAG]: request };
    const data = { id, timeoutAt, param, tags: { ...lineage(id, id), ...target, ...tags, ...log } };
    const record = await this.#wire.call({ kind: "promise.create", data });
    const promise = record && this.#names.decode(record, { param, call });
    if (!promise) throw new NameTaken(name);
    return promise;
  }

  async #cancel(id: string): Promise<DurablePromise | undefined> {
    const value = encodeValue(undefined);
    const data = { id, state: "rejected_canceled" as const, value };
    const record = await this.#wire.call({ kind: "promise.settle", data });
    return record && this.#names.decode(record);
  }

  async #createChild(
    origin: string,
    id: string,
    timeoutAt: number,
    tags: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<PromiseRecord | undefined> {
    const data = { id, timeoutAt, param: encodeValue(undefined), tags: { ...lineage(origin, id), ...tags } };
    return this.#wire.call({ kind: "promise.create", data }, signal);
  }

  #listen(id: string, channel: Channel, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    const data = { awaited: id, address: channel.address };
    return this.#wire.call({ kind: "promise.register_listener", data }, signal);
  }

  #scoped(scope: Scope): RemoteStore {
    return new RemoteStore(this.#config, this.#names.jobs, scope, this.#wire);
  }
}
