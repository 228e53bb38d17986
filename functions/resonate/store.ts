/** The promises of a deployment's jobs. Nothing else of the edge touches the Resonate server. */
import type { Caller } from "../caller.ts";
import type { Config } from "../config.ts";
import { type AnyJob, type Job, REQUEST_TAG } from "../jobs/job.ts";
import { Claims, startRecordId } from "./claims.ts";
import { Journals } from "./journal.ts";
import { Names } from "./names.ts";
import { findOwn, type OwnJob, ownTags } from "./own.ts";
import { childOf, type DurablePromise, encodeValue, lineage, STARTER } from "./promise.ts";
import { QuotaExceeded, takePlace } from "./quota.ts";
import { type Channel, Wire } from "./wire.ts";

export type { NewestEntry } from "./journal.ts";
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
  readonly journals: Journals;
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
    this.journals = new Journals(wire, this.#names);
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
    const own = ownTags(this.#names, job);
    if (!this.#claims(job)) return this.#create(job, name, args, timeoutAt, own);
    const { key, claimant } = this.#scope;
    const tags = { [STARTER]: claimant, ...(key !== "" && own) };
    return this.join(await this.#create(job, name, args, timeoutAt, tags));
  }

  /** Makes a job that was found one that this caller started, and nobody else cancels. Returns it as it is then. */
  async join(promise: DurablePromise): Promise<DurablePromise> {
    if (!this.#claims(promise.job)) return promise;
    const { key, claimant, request } = this.#scope;
    if (promise.starter !== claimant) {
      if (key !== "") await this.#recordStart(promise);
      return this.#claim(promise);
    }
    // It is his, unless he gave it up after he had created it.
    const isNew = request !== "" && promise.request === request;
    if (isNew || key === "" || promise.state !== "pending") return promise;
    const record = await this.#startRecord(promise);
    return record?.state === "resolved" ? this.#claim(promise) : promise;
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
      const started = promise.starter === key || (await this.#startRecord(promise));
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
    const data = { awaited: id, address: channel.address };
    const record = await this.#wire.call({ kind: "promise.register_listener", data }, signal);
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

  /** Whether the job is one that others may want as well. */
  #claims(job: Pick<AnyJob, "shared">): boolean {
    return job.shared === true && this.#scope.claimant !== "";
  }

  #startRecord({ job, name }: DurablePromise) {
    const id = startRecordId(this.#names.id(job, name), this.#scope.key);
    return this.#wire.call({ kind: "promise.get", data: { id } });
  }

  async #recordStart({ job, name, timeoutAt }: DurablePromise): Promise<void> {
    const id = this.#names.id(job, name);
    const record = startRecordId(id, this.#scope.key);
    await this.#wire.call(childOf(id, record, timeoutAt, { tags: ownTags(this.#names, job) }));
  }

  /** Sees to it that nobody else cancels a shared job. Returns it as it is then. */
  async #claim(promise: DurablePromise): Promise<DurablePromise> {
    if (promise.state !== "pending") return promise;
    const id = this.#names.id(promise.job, promise.name);
    const isClaimed = await new Claims(this.#wire, id, promise.timeoutAt).claim(this.#scope.claimant);
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

  #scoped(scope: Scope): RemoteStore {
    return new RemoteStore(this.#config, this.#names.jobs, scope, this.#wire);
  }
}
