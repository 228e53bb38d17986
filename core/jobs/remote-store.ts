/** The promises of a deployment's jobs: the way in which the edge and running jobs reach the Resonate server. */
import { around } from "../around.ts";
import type { Caller } from "../author/caller.ts";
import { type Job, NotStarted, REQUEST_TAG, VERSION_TAG } from "../author/job.ts";
import { encodeValue, getOf, lineage } from "../resonate/codec.ts";
import { type Requests, ResonateClient } from "../resonate/connection/client.ts";
import type { Channel } from "../resonate/connection/connections.ts";
import { ResonateRefused, ResonateUnavailable } from "../resonate/connection/failures.ts";
import { FanOut } from "../resonate/connection/fan-out.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { isRoot, rootOf, splitGeneration, splitKey } from "../resonate/ids.ts";
import type { CallerRecord, CallerRecords } from "./caller-record.ts";
import type { DurablePromise } from "./durable-promise.ts";
import { FeedCache, ProgressFeeds } from "./feed/progress-feeds.ts";
import type {
  CancellationOutcome,
  JobCancellation,
  JobFeature,
  JobLook,
  JobRemoval,
  JobStart,
  PreviousAttempt,
  RemovalOutcome,
  Requester,
} from "./job-feature.ts";
import { Names } from "./names.ts";
import type { JobsEndpoint, Settlement } from "./settlements.ts";

/** What all stores of a process share. It holds no promises and connections, as those belong to one request. */
class StoreParts {
  readonly endpoint: JobsEndpoint;
  readonly jobs: readonly Job[];
  readonly features: readonly JobFeature[];
  readonly records: CallerRecords | undefined;
  readonly feeds = new FeedCache();
  readonly start: (start: JobStart) => Promise<DurablePromise>;
  readonly cancel: (cancellation: JobCancellation) => Promise<CancellationOutcome | undefined>;
  readonly look: (look: JobLook) => Promise<DurablePromise>;
  readonly forget: (removal: JobRemoval) => Promise<RemovalOutcome>;

  constructor(
    endpoint: JobsEndpoint,
    jobs: readonly Job[],
    features: readonly JobFeature[],
    records: CallerRecords | undefined,
  ) {
    this.records = records;
    this.endpoint = endpoint;
    this.jobs = jobs;
    this.features = features;
    this.start = around(layersOf(features, "start"), createOrJoin);
    this.cancel = around(layersOf(features, "cancel"), settle);
    this.look = around(layersOf(features, "look"), asRead);
    this.forget = around(layersOf(features, "forget"), remove);
  }
}

/** The layers that features put around one kind of work. */
const layersOf = <K extends "start" | "cancel" | "look" | "forget">(features: readonly JobFeature[], seam: K) =>
  features.map((feature) => feature[seam]);

interface StoreOptions {
  /** Who acts through the store. Default: nobody in particular. */
  by?: Requester;
  client?: Requests;
  /** The records of the deployment's callers. Default: none are kept. */
  records?: CallerRecords | undefined;
}

/** Nobody in particular: a store that serves no request. */
const NO_REQUESTER: Requester = { key: "", requestId: "" };

/**
 * The jobs that one caller may see. Any other promise does not exist here, and is neither read, listened to nor settled: one
 * whose id is no job's or another caller's, or that calls another function than its job's.
 *
 * Every method throws {@link ResonateUnavailable} when the server cannot be reached or cannot answer.
 */
export class RemoteStore {
  /** Who acts through this store. */
  readonly by: Requester;
  readonly client: Requests;
  readonly endpoint: JobsEndpoint;
  readonly names: Names;
  readonly #shared: StoreParts;
  /** Counts and bounds the calls of a request; undefined outside of one. */
  readonly #fanOut: FanOut | undefined;
  #feeds: ProgressFeeds | undefined;

  private constructor(shared: StoreParts, by: Requester, client: Requests, fanOut?: FanOut) {
    this.#shared = shared;
    this.by = by;
    this.client = client;
    this.endpoint = shared.endpoint;
    this.names = new Names(shared.jobs, this.endpoint.namespace, by.key);
    this.#fanOut = fanOut;
  }

  /** The store of a deployment, with the features that take part in its jobs, the first outermost. */
  static of(
    endpoint: JobsEndpoint,
    jobs: readonly Job[],
    features: readonly JobFeature[] = [],
    { by = NO_REQUESTER, client = new ResonateClient(endpoint), records }: StoreOptions = {},
  ): RemoteStore {
    return new RemoteStore(new StoreParts(endpoint, jobs, features, records), by, client);
  }

  /** The same store for one request of a caller, which has a bounded number of calls to the Resonate server under way. */
  as({ key }: Pick<Caller, "key">, requestId: string, more: Partial<Requester> = {}): RemoteStore {
    const fanOut = new FanOut();
    const by = { ...this.by, key, requestId, ...more };
    return new RemoteStore(this.#shared, by, fanOut.limit(this.client), fanOut);
  }

  /** The same store for the same request, which says more about itself. */
  with(more: Partial<Requester>): RemoteStore {
    return new RemoteStore(this.#shared, { ...this.by, ...more }, this.client, this.#fanOut);
  }

  /** A store for the durable function whose promise is `promiseId`, which acts for the caller of that job. */
  onBehalfOf(promiseId: string, more: Partial<Requester> = {}): RemoteStore {
    const parent = this.names.local(promiseId);
    const by = { ...this.by, key: splitKey(parent).key, parent, requestId: "", ...more };
    return new RemoteStore(this.#shared, by, this.client);
  }

  /** The progress feeds and questions of jobs. */
  get feeds(): ProgressFeeds {
    this.#feeds ??= new ProgressFeeds(this.client, this.#shared.feeds);
    return this.#feeds;
  }

  /** How many calls to the Resonate server the request has made so far. */
  get calls(): number {
    return this.#fanOut?.count ?? 0;
  }

  /** Adds calls that other objects made for the request. */
  charge(calls: number): void {
    if (this.#fanOut) this.#fanOut.count += calls;
  }

  /** Whether a feature needs each start of this caller to be a job, even one that could be done without. */
  get needsJobs(): boolean {
    return this.#shared.features.some((feature) => feature.needsJob?.(this.by));
  }

  /** The records of the deployment's callers; undefined if it keeps none. */
  get records(): CallerRecords | undefined {
    return this.#shared.records;
  }

  /** The record of this caller. Callers without authentication share one, which only a limit of their jobs needs. */
  get record(): CallerRecord | undefined {
    const { key } = this.by;
    const { records } = this;
    return key !== "" || (records?.limits.jobs ?? 0) > 0 ? records?.of(key, (calls) => this.charge(calls)) : undefined;
  }

  /** The promise id of `name`: this caller's or, for a shared job, the common one. Undefined if no job can have the name. */
  idOf(name: string): string | undefined {
    return this.names.idOf(name);
  }

  /** The name of a job in logs, which do not keep callers apart: its promise id without the namespace. */
  logName(name: string): string {
    return this.names.local(this.names.idOf(name) ?? "");
  }

  /**
   * Creates the promise `name` with the worker group as its target, or returns the existing one. `now`: in milliseconds since
   * the epoch; `previous`: the ended attempt that this one follows.
   *
   * @throws {NotStarted} when something else has its name, it would end before it began, or a feature refuses it
   */
  create<Args>(
    job: Job<Args>,
    name: string,
    args: Args,
    now: number,
    previous?: PreviousAttempt,
  ): Promise<DurablePromise> {
    const id = this.names.id(job, name);
    const { kind, runs, group = this.endpoint.group, version } = job;
    const { requestId } = this.by;
    const tags: Record<string, string> = {
      ...lineage(id),
      ...this.names.ownerTags(kind),
      [VERSION_TAG]: String(version),
    };
    if (runs !== "edge") tags["resonate:target"] = `poll://any@${group}`;
    if (requestId !== "") tags[REQUEST_TAG] = requestId;
    const deadline = job.deadline(args, now);
    return this.#shared.start({
      job: job as Job,
      name,
      id,
      args,
      now,
      by: this.by,
      previous,
      existing: undefined,
      deadline,
      timeoutAt: deadline,
      call: { func: kind, args: [args], version: 1, seed: crypto.randomUUID() },
      tags,
      jobs: this,
    });
  }

  /** Has this caller want an existing job too, as if it had started the job. Returns its current promise. */
  join(promise: DurablePromise): Promise<DurablePromise> {
    const { job, name, id, args, deadline, timeoutAt } = promise;
    return this.#shared.start({
      job,
      name,
      id,
      args,
      now: Date.now(),
      by: this.by,
      previous: undefined,
      existing: promise,
      deadline,
      timeoutAt,
      call: { func: job.kind, args: [args], version: 1, seed: "" },
      tags: {},
      jobs: this,
    });
  }

  /**
   * `maxValue`: how many characters of JSON a value may have where the server leaves out longer ones; see
   * {@link PromiseRecord.omitted}.
   */
  async get(name: string, signal?: AbortSignal, maxValue?: number): Promise<DurablePromise | undefined> {
    const id = this.names.idOf(name);
    if (id === undefined) return undefined;
    const record = await this.client.call({ ...getOf(id), maxValue }, signal);
    const promise = record && this.names.decode(record);
    return promise && this.complete(promise, signal);
  }

  /** A promise that was just decoded, with what other promises tell about its job. */
  complete(promise: DurablePromise, signal?: AbortSignal): Promise<DurablePromise> {
    return this.#shared.look({ promise, signal, jobs: this });
  }

  /** Whether the job waits for a worker; false where the server does not say. */
  async isOffered({ id, state }: DurablePromise, signal?: AbortSignal): Promise<boolean> {
    if (state !== "pending") return false;
    const answer = await this.client.send("task.get", { id }, { origin: id, signal }).catch(() => undefined);
    return answer?.status === 200 && answer.data.task.state === "pending";
  }

  child(id: string, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    return this.client.call(getOf(id), signal);
  }

  /**
   * Cancels the job unless it has settled. Returns its current promise and whether this call ended the job; undefined for a job
   * that this caller did not start. A job that other callers want as well is given up and continues.
   */
  async cancel(name: string): Promise<CancellationOutcome | undefined> {
    const promise = await this.get(name);
    if (!promise) return undefined;
    return this.#shared.cancel({ promise, by: this.by, isForced: false, jobs: this });
  }

  /** Cancels a job as {@link cancel} does, even if other callers want it. */
  end(promise: DurablePromise): Promise<CancellationOutcome | undefined> {
    return this.#shared.cancel({ promise, by: this.by, isForced: true, jobs: this });
  }

  /**
   * Removes an ended job that belongs to this caller alone, with all generations of its name; undefined if there is no such job.
   */
  async forget(name: string): Promise<RemovalOutcome | undefined> {
    const promise = await this.get(name);
    if (!promise || promise.job.shared) return undefined;
    const id = this.names.id(promise.job, splitGeneration(name).base);
    return this.#shared.forget({ promise, id, by: this.by, jobs: this });
  }

  /**
   * Asks for the settlement of `name` to be pushed to `channel`. Returns the current promise, as a promise that has settled
   * before is not pushed; undefined when it does not exist or cannot be listened to. `maxValue` is that of {@link get}.
   */
  async listen(
    name: string,
    channel: Channel,
    signal?: AbortSignal,
    maxValue?: number,
  ): Promise<DurablePromise | undefined> {
    const id = this.names.idOf(name);
    if (id === undefined) return undefined;
    const data = { awaited: id, address: channel.address };
    const record = await this.client.call({ kind: "promise.register_listener", data, maxValue }, signal);
    return record && this.names.decode(record);
  }

  /**
   * Subscribes to settlements of these jobs and their children. A lost channel is not opened again: see {@link Channel.closed}.
   *
   * @throws {ResonateUnavailable} in a deployment without such a connection
   */
  async open(
    names: readonly string[],
    onSettled: (settlement: Settlement) => void,
    signal: AbortSignal,
  ): Promise<Channel> {
    const { settlements } = this.endpoint;
    if (!settlements) throw new ResonateUnavailable("nobody is connected to it for news");
    const report = async (id: string, record: PromiseRecord | undefined) => {
      const pushed = record && isRoot(id) ? this.names.decode(record) : undefined;
      // Without it the subscriber reads the promise itself.
      const promise = pushed && (await this.complete(pushed, signal).catch(() => undefined));
      onSettled({ name: this.names.nameIn(rootOf(id)), isChild: !isRoot(id), promise });
    };
    return settlements.open({
      ids: names.flatMap((name) => this.names.idOf(name) ?? []),
      caller: this.by.key,
      onNews: ({ id, promise }) => void report(id, promise),
      signal,
    });
  }
}

/** Creates the promise of a job, or finds it. */
async function createOrJoin(start: JobStart): Promise<DurablePromise> {
  const { existing, id, timeoutAt, call, tags, job, name, jobs } = start;
  if (existing) return existing;
  const param = start.param ?? encodeValue(call);
  const record = await jobs.client.call({ kind: "promise.create", data: { id, timeoutAt, param, tags } });
  const promise = record && jobs.names.decodeCreated(record, { job, name, call, param });
  if (promise) return promise;
  throw new NotStarted(
    `the name ${name} is taken on the Resonate server by something that is not a job of this server`,
  );
}

async function settle({ promise, jobs }: JobCancellation): Promise<CancellationOutcome | undefined> {
  if (promise.state !== "pending") return { promise, isOurs: false };
  const by = crypto.randomUUID();
  const data = { id: promise.id, state: "rejected_canceled" as const, value: encodeValue({ by }) };
  const record = await jobs.client.call({ kind: "promise.settle", data });
  const current = record && jobs.names.decode(record);
  return current && { promise: current, isOurs: (current.value as { by?: unknown } | undefined)?.by === by };
}

const asRead = async ({ promise }: JobLook): Promise<DurablePromise> => promise;

async function remove({ promise, id, jobs }: JobRemoval): Promise<RemovalOutcome> {
  try {
    const { status } = await jobs.client.send("promise.forget", { id }, { origin: id });
    return status === 422 ? "running" : "forgotten";
  } catch (error) {
    if (!(error instanceof ResonateRefused) || error.status !== 400) throw error;
    return promise.state === "pending" ? "running" : "hidden";
  }
}
