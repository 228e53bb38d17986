/** The promises of a deployment's jobs: the way in which the edge and running jobs reach the Resonate server. */

import { Claims } from "../../features/claims/claims.ts";
import { labelsIn } from "../../features/labels/labels.ts";
import type { TellStart } from "../../features/operators/starts.ts";
import { loadOrder } from "../../features/order/load-order.ts";
import type { Orders } from "../../features/order/order.ts";
import { exceeded, reservationFor, tagOf } from "../../features/quota/reservation.ts";
import type { Caller } from "../author/caller.ts";
import { hashed, type Job, NotStarted, REQUEST_TAG, VERSION_TAG } from "../author/job.ts";
import { TRACE_TAG } from "../author/trace-context.ts";
import {
  AFTER,
  CLEANED_UP,
  childOf,
  decodeValue,
  EARLIER,
  encodeValue,
  getOf,
  KEEP,
  lineage,
  RESERVATION,
  STARTER,
} from "../resonate/codec.ts";
import { type Requests, ResonateClient } from "../resonate/connection/client.ts";
import type { Channel } from "../resonate/connection/connections.ts";
import { orUnread, ResonateRefused, ResonateUnavailable } from "../resonate/connection/failures.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import {
  cleanUpId,
  isRoot,
  orderId,
  resumptionId,
  rootOf,
  splitGeneration,
  splitKey,
  startRecordId,
} from "../resonate/ids.ts";
import { FanOut } from "../resonate/pacing/fan-out.ts";
import { sizeOf } from "../resonate/size.ts";
import {
  type CallerRecord,
  type ListQuery,
  NO_RESERVATION,
  type SeenJob,
  type StartedJob,
  startedJob,
} from "./caller-record.ts";
import type { DurablePromise, Resumption } from "./durable-promise.ts";
import { FeedCache, ProgressFeeds } from "./feed/progress-feeds.ts";
import { Names, type Sent } from "./names.ts";
import { type Cursor, type OwnStep, ownTags, searchOwn } from "./own-jobs.ts";
import type { JobsEndpoint, Settlement } from "./settlements.ts";

/** The claimant of a job in a deployment that does not tell callers apart. */
const ANYBODY = "anyone";

/** How long a cancelled job's clean-up may wait for a worker, in milliseconds. */
const CLEAN_UP_TIME = 24 * 3_600_000;

/** Why a start is refused where nothing can enforce `MAX_JOBS`. */
const NO_RECORD =
  "this deployment limits how many jobs a caller may start, and has no CALLER binding to count them with. " +
  "Its operator binds the Durable Object CallerObject as CALLER in wrangler.toml, or sets MAX_JOBS to 0";

/** What the requests of an isolate, or a worker's jobs, share. It holds only values, as promises belong to one request. */
interface Shared {
  read: FeedCache;
  orders: Orders;
}

/** The ended attempt that a new one follows, and whether the new one does not repeat its finished steps. */
interface Before {
  attempt: DurablePromise;
  isResumed: boolean;
}

interface Scope {
  key: string;
  /** The claimant of shared jobs: the caller's key, or the durable function that acts for it. Empty where they are not claimed. */
  claimant: string;
  /** How many jobs of each length the caller may start in that length of time; 0 for any number. */
  quota: number;
  /** How many bytes of the caller's jobs may be stored; 0 for any number. */
  storage: number;
  /** The record of the caller with a key; undefined where the deployment keeps none, and for a worker. */
  records: ((key: string, charge?: (calls: number) => void) => CallerRecord) | undefined;
  /** How many calls to the Resonate server the request has made so far. */
  calls: () => number;
  /** Adds calls that other objects made for the request. */
  charge: (calls: number) => void;
  /** Charges a start for the further jobs that it counts as, which workers start later. Throws when they are too many for now. */
  chargeStarts: (count: number) => Promise<void>;
  /** Whether starts are recorded for events even where callers are not told apart. */
  isHeard: () => boolean;
  /** The id of the current request; empty outside of one. */
  request: string;
  /** The span that starts the jobs, as a `traceparent`; undefined without tracing. */
  trace: () => string | undefined;
  labels: readonly string[];
  /** Why no job may be started; undefined when jobs may start. */
  refuses: string | undefined;
  /** Must not reject. Undefined in a deployment without operators. */
  tellStart: TellStart | undefined;
}

/** The scope of a deployment that does not tell callers apart and limits nothing. */
const UNBOUNDED: Scope = {
  ...{ key: "", claimant: "", request: "", quota: 0, storage: 0, labels: [] },
  ...{ records: undefined, refuses: undefined, tellStart: undefined },
  calls: () => 0,
  charge() {},
  async chargeStarts() {},
  isHeard: () => false,
  trace: () => undefined,
};

/**
 * The jobs that one caller may see. Any other promise does not exist here, and is neither read, listened to nor settled: one
 * whose id is no job's or another caller's, or that calls another function than its job's.
 *
 * Every method throws {@link ResonateUnavailable} when the server cannot be reached or cannot answer.
 */
export class RemoteStore {
  readonly feeds: ProgressFeeds;
  /** The caller of this store, and the limits and labels of the jobs that it starts. */
  readonly scope: Readonly<Scope>;
  readonly #endpoint: JobsEndpoint;
  readonly #names: Names;
  readonly #client: Requests;
  readonly #shared: Shared;

  constructor(
    endpoint: JobsEndpoint,
    jobs: readonly Job[],
    scope: Partial<Scope> = {},
    client: Requests = new ResonateClient(endpoint),
    shared: Shared = { read: new FeedCache(), orders: new Map() },
  ) {
    this.#endpoint = endpoint;
    this.scope = { ...UNBOUNDED, ...scope };
    this.#names = new Names(jobs, endpoint.namespace, this.scope.key);
    this.#client = client;
    this.#shared = shared;
    this.feeds = new ProgressFeeds(client, shared.read);
  }

  /** The same store for one request of a caller, which has a bounded number of calls to the Resonate server under way. */
  as(
    { key }: Caller,
    request: string,
    of: Partial<Pick<Scope, "trace" | "chargeStarts" | "refuses">> = {},
  ): RemoteStore {
    const fanOut = new FanOut();
    const calls = () => fanOut.count;
    const charge = (more: number) => {
      fanOut.count += more;
    };
    const scope = { ...this.scope, key, claimant: key, request, ...of, calls, charge };
    return new RemoteStore(this.#endpoint, this.#names.jobs, scope, fanOut.bounded(this.#client), this.#shared);
  }

  labelled(labels: readonly string[]): RemoteStore {
    return this.#scoped({ ...this.scope, labels });
  }

  /**
   * Returns a store for the durable function whose promise is `promiseId`, which acts for the caller of that job. `storage`: how
   * many bytes of files each job that the function starts may store; 0 for any number.
   */
  onBehalfOf(promiseId: string, storage = 0): RemoteStore {
    const local = this.#names.local(promiseId);
    const { key } = splitKey(local);
    const { trace, tellStart } = this.scope;
    return this.#scoped({ key, claimant: local, storage, trace, tellStart });
  }

  /** The promise id of `name`: this caller's or, for a shared job, the common one. Undefined if no job can have the name. */
  idOf(name: string): string | undefined {
    return this.#names.idOf(name);
  }

  /** The name of a job in logs, which do not keep callers apart: its promise id without the namespace. */
  logName(name: string): string {
    return this.#names.local(this.#names.idOf(name) ?? "");
  }

  /**
   * Creates the promise `name` with the worker group as its target, or returns the existing one. After a cancelled attempt the
   * new one waits for the clean-up.
   *
   * @throws {NotStarted} when something else has its name, it would end before it began, or it does not exist and the caller has
   * reached a limit
   */
  async create<Args>(job: Job<Args>, name: string, args: Args, now: number, before?: Before): Promise<DurablePromise> {
    const { refuses } = this.scope;
    if (refuses !== undefined && !(await this.get(name))) throw new NotStarted(refuses);
    // The promise outlives the deadline, so that the function can clean up after `DeadlineExceeded`.
    const cleanup = cleansUp(job) ? job.cleanupTime : 0;
    const deadline = job.deadline(args, now);
    const timeoutAt = deadline + cleanup;
    const given = this.scope.labels.length > 0 ? this.scope.labels : (before?.attempt.labels ?? []);
    const labels = labelsIn([...given, ...(job.labels?.(args) ?? [])]);
    const started: StartedJob = {
      ...{ id: this.#names.id(job, name), kind: job.kind, state: "pending", startedAt: now, settledAt: null },
      ...{ due: job.expectedAt?.(args) ?? deadline, ...NO_RESERVATION, labels },
    };
    const noted = this.#noteStart(job, started);
    noted.catch(() => {}); // It is awaited below, unless another error comes first.
    const call = {
      func: job.kind,
      args: [args],
      version: 1,
      seed: crypto.randomUUID(),
      ...(cleanup > 0 && { cleanup }),
      ...(this.scope.storage > 0 && { storage: this.scope.storage }),
      // Callers of a shared job must not see each other's labels.
      ...(labels.length > 0 && !this.#claims(job) && { labels }),
    };
    const param = encodeValue(call);
    const bytes = sizeOf({ param, value: {} });
    const reserved = await this.#reserve(name, { ...started, bytes }, () => job.counts(args));
    // If this fails, the job may exist nevertheless: its reservation stays until the record has looked at the promise.
    const promise = await this.#createOrFind(job, name, { call, param }, timeoutAt, before, reserved?.tag);
    await noted;
    const isNew = this.scope.request !== "" && promise.request === this.scope.request;
    const isRecorded = isNew || (reserved?.isKnown === true && promise.state === "pending");
    return this.join(promise, isRecorded);
  }

  async #createOrFind<Args>(
    job: Job<Args>,
    name: string,
    sent: Sent,
    timeoutAt: number,
    before: Before | undefined,
    reservation: string | undefined,
  ): Promise<DurablePromise> {
    const id = this.#names.id(job, name);
    const { claimant, key, request, trace, tellStart } = this.scope;
    const isClaimed = this.#claims(job);
    let order = {};
    if (job.concurrency && !(await this.get(name))) {
      const { positionIn } = await loadOrder();
      const hash = await hashed(job.concurrency.key(sent.call.args[0] as Args));
      const chain = orderId(this.#endpoint.namespace, job.kind, hash);
      order = await positionIn(chain, this.#client, { id, timeoutAt }, this.#shared.orders);
    }
    const target = job.runs !== "edge" && { "resonate:target": `poll://any@${job.group ?? this.#endpoint.group}` };
    const span = trace();
    const tags = {
      ...lineage(id),
      ...target,
      [VERSION_TAG]: String(job.version),
      ...(job.keepFor !== undefined && { [KEEP]: String(job.keepFor) }),
      ...(isClaimed && { [STARTER]: claimant }),
      ...((!isClaimed || this.#isCaller || key === "") && ownTags(this.#names.owner, job)),
      ...(before?.isResumed && { [EARLIER]: before.attempt.id }),
      ...(before?.attempt.state === "rejected_canceled" &&
        cleansUp(job) && { [CLEANED_UP]: cleanUpId(before.attempt.id) }),
      ...(reservation !== undefined && { [RESERVATION]: reservation }),
      ...order,
      ...(request !== "" && { [REQUEST_TAG]: request }),
      ...(span !== undefined && { [TRACE_TAG]: span }),
    };
    const told = target && tellStart?.(job.kind, this.#names.local(id));
    const data = { id, timeoutAt, param: sent.param, tags };
    const record = await this.#client.call({ kind: "promise.create", data });
    await told;
    const promise = record && this.#names.decode(record, sent);
    if (promise) return promise;
    throw new NotStarted(
      `the name ${name} is taken on the Resonate server by something that is not a job of this server`,
    );
  }

  /** Records that this caller started an existing job too, so that nobody else cancels it. Returns its current promise. */
  async join(promise: DurablePromise, isRecorded = false): Promise<DurablePromise> {
    if (!isRecorded) await this.#record?.note([this.#entryOf(promise)]);
    if (!this.#claims(promise.job)) {
      // Without a claim, a durable function that started the job could cancel it while this caller wants it.
      const mayBeGivenUp = promise.job.shared && promise.starter !== undefined;
      return mayBeGivenUp ? this.#claim(promise, ANYBODY) : promise;
    }
    const { claimant, request } = this.scope;
    if (promise.starter !== claimant) {
      if (this.#isCaller) await this.#recordStart(promise);
      return this.#claim(promise);
    }
    // The creator needs no claim of its own job, unless it gave the job up before.
    const isNew = request !== "" && promise.request === request;
    if (isNew || !this.#isCaller || promise.state !== "pending") return promise;
    const record = await this.#startRecord(promise);
    return record?.state === "resolved" ? this.#claim(promise) : promise;
  }

  async get(name: string, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    const id = this.#names.idOf(name);
    if (id === undefined) return undefined;
    const record = await this.#client.call(getOf(id), signal);
    const promise = record && this.#names.decode(record);
    if (!promise || isWhole(promise)) return promise;
    const isCancelled = promise.state === "rejected_canceled";
    const [told, cleanup] = await Promise.all([
      promise.earlier !== undefined ? this.child(resumptionId(id), signal) : undefined,
      isCancelled ? this.child(cleanUpId(id), signal) : undefined,
    ]);
    return {
      ...promise,
      ...(told && { resumption: withoutSeed(decodeValue(told.param) as Resumption) }),
      ...(cleanup && { cleanup: { state: cleanup.state, value: decodeValue(cleanup.value) } }),
    };
  }

  /** Whether the job waits for a worker; false where the server does not say. */
  async isOffered({ id, state }: DurablePromise, signal?: AbortSignal): Promise<boolean> {
    if (state !== "pending") return false;
    const answer = await this.#client.send("task.get", { id }, { origin: id, signal }).catch(() => undefined);
    return answer?.status === 200 && answer.data.task.state === "pending";
  }

  child(id: string, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    return this.#client.call(getOf(id), signal);
  }

  /**
   * Cancels the job unless it has settled. Returns its current promise and whether this call ended the job; undefined for a job
   * that this caller did not start and, with `onlyShared`, for a job that is not shared. A job that other callers want as well
   * is given up and goes on.
   */
  async cancel(name: string, onlyShared = false): Promise<{ promise: DurablePromise; isOurs: boolean } | undefined> {
    const promise = await this.get(name);
    if (!promise || (onlyShared && !promise.job.shared)) return undefined;
    const { state, starter } = promise;
    const { claimant } = this.scope;
    const asItIs = { promise, isOurs: false };
    if (this.#claims(promise.job)) {
      if (this.#isCaller && starter !== claimant && !(await this.#startRecord(promise))) return undefined;
      if (state !== "pending" || !(await this.#claimsOf(promise).giveUp(claimant, starter))) return asItIs;
    }
    return state === "pending" ? this.#cancel(promise) : asItIs;
  }

  /** For operators: cancels a job as {@link cancel} does, even if other callers want it. */
  async end(name: string): Promise<{ promise: DurablePromise; isOurs: boolean } | undefined> {
    const promise = await this.get(name);
    return promise?.state === "pending" ? this.#cancel(promise) : promise && { promise, isOurs: false };
  }

  /**
   * Removes an ended job that belongs to this caller alone, with all generations of its name; undefined if there is no such job.
   * If the Resonate server cannot remove promises, the job is `hidden`: it stays, but is left out of the list.
   */
  async forget(name: string): Promise<"forgotten" | "hidden" | "running" | undefined> {
    const promise = await this.get(name);
    if (!promise || promise.job.shared) return undefined;
    // A clean-up still reads the journal.
    if (promise.cleanup?.state === "pending") return "running";
    const id = this.#names.id(promise.job, splitGeneration(name).base);
    const record = this.scope.records?.(this.scope.key);
    try {
      const { status } = await this.#client.send("promise.forget", { id }, { origin: id });
      if (status === 422) return "running";
      await record?.forget(id, false);
      return "forgotten";
    } catch (error) {
      if (!(error instanceof ResonateRefused) || error.status !== 400) throw error;
      if (promise.state === "pending") return "running";
      await record?.forget(id, true);
      return "hidden";
    }
  }

  /** Has a worker clean up after a job that is about to be cancelled: see `AFTER`. */
  async #cleanUp(id: string): Promise<void> {
    const after = cleanUpId(id);
    // Any worker of the group takes it. A search for jobs by the group's address must not find it: hence the suffix.
    const tags = { ...lineage(after), "resonate:target": `poll://any@${this.#endpoint.group}/after` };
    const param = encodeValue({ func: AFTER, args: [], version: 1 });
    const data = { id: after, timeoutAt: Date.now() + CLEAN_UP_TIME, param, tags };
    await this.#client.call({ kind: "promise.create", data });
  }

  /**
   * Asks for the settlement of `name` to be pushed to `channel`. Returns the current promise, as a promise that has settled
   * before is not pushed; undefined when it does not exist or cannot be listened to.
   */
  async listen(name: string, channel: Channel, signal?: AbortSignal): Promise<DurablePromise | undefined> {
    const id = this.#names.idOf(name);
    if (id === undefined) return undefined;
    const data = { awaited: id, address: channel.address };
    const record = await this.#client.call({ kind: "promise.register_listener", data }, signal);
    return record && this.#names.decode(record);
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
    const { settlements } = this.#endpoint;
    if (!settlements) throw new ResonateUnavailable("nobody is connected to it for news");
    return settlements.open({
      ids: names.flatMap((name) => this.#names.idOf(name) ?? []),
      caller: this.scope.key,
      onNews: ({ id, promise }) =>
        onSettled({
          name: this.#names.nameIn(rootOf(id)),
          isChild: !isRoot(id),
          promise: promise && isRoot(id) ? whole(this.#names.decode(promise)) : undefined,
        }),
      signal,
    });
  }

  /**
   * The jobs that this caller started, newest first. With `state`, a few jobs in another state may be among them. Returns
   * whether these are all of the caller's jobs.
   *
   * @throws {SearchRefused} when the caller has no record, and the server does not search
   */
  async *started(
    { cursor, ...filter }: Omit<ListQuery, "after"> & { cursor?: Cursor | undefined },
    signal?: AbortSignal,
  ): AsyncGenerator<OwnStep, boolean> {
    const record = this.scope.key === "" ? undefined : this.#record;
    if (!record) {
      const { kind, search } = filter;
      return yield* searchOwn(this.#client, this.#names, { kind, search, cursor }, signal);
    }
    let after = cursor && { startedAt: cursor.startedAt, id: this.#names.idInList(cursor.name) };
    for (;;) {
      const rows = await record.list({ ...filter, after });
      const names = rows.map(({ id }) => this.#names.nameIn(id));
      const promises = await Promise.all(
        rows.map(({ passed }, i) =>
          passed ? undefined : this.get(names[i] ?? "", signal).catch(orUnread("unread" as const)),
        ),
      );
      const changed = rows.flatMap(({ id, state, passed }, i): SeenJob[] => {
        const promise = promises[i];
        if (passed || promise === "unread" || promise?.state === state) return [];
        if (promise) return [this.#entryOf(promise)];
        // Jobs of other kinds are not read: an earlier or later deployment may have those kinds.
        return this.#names.find(id) ? [{ id }] : [];
      });
      if (changed.length > 0) await record.note(changed, true);
      for (const [i, { startedAt, labels, passed }] of rows.entries()) {
        const [name = "", promise] = [names[i], promises[i]];
        const isUnread = promise === "unread";
        const job = promise && !isUnread ? { name, job: promise.job, startedAt, promise, labels } : undefined;
        yield { job, cursor: { startedAt, name }, isUnread, ...(passed && { passed }) };
      }
      const last = rows.at(-1);
      if (!last || (rows.length < filter.limit && !last.passed)) return true;
      after = last;
    }
  }

  /** How many bytes of the caller's jobs are stored, and how many may be; undefined without a limit. */
  async stored(): Promise<{ bytes: number; limit: number } | undefined> {
    const { storage: limit } = this.scope;
    const record = limit > 0 ? this.#record : undefined;
    return record && { bytes: await record.stored(), limit };
  }

  /** The caller's record; undefined when the edge needs none, or has none. */
  get #record(): CallerRecord | undefined {
    const { key, quota, records, charge } = this.scope;
    return key !== "" || quota > 0 ? records?.(key, charge) : undefined;
  }

  /** Enters a job in the common record of callers who are not told apart, while the job starts: only events need the entry. */
  async #noteStart({ runs }: Pick<Job, "runs">, started: StartedJob): Promise<void> {
    const { key, records, isHeard } = this.scope;
    // All starts would queue at this one shared record, so a start that no event tells of skips it.
    if (this.#record || !records || !(runs === "edge" || isHeard())) return;
    await records(key)
      .reserve(started, { jobs: 0, bytes: 0 })
      .catch((error) => {
        // Without the entry no event tells of this job. A job that the record itself looks after must be in it.
        if (runs === "edge") throw error;
      });
  }

  /** The job's entry in its caller's record. */
  #entryOf({ record, job, state, bytes, labels }: DurablePromise): StartedJob {
    return startedJob(record, this.scope.key, undefined, { kind: job.kind, state, bytes, labels });
  }

  /** Whether this store acts for a caller directly, and not through a durable function. */
  get #isCaller(): boolean {
    const { key, claimant } = this.scope;
    return key !== "" && claimant === key;
  }

  /** Whether the job must be claimed, as others may want it as well. */
  #claims(job: Pick<Job, "shared">): boolean {
    return job.shared === true && this.scope.claimant !== "";
  }

  #claimsOf({ id, timeoutAt }: DurablePromise): Claims {
    return new Claims(this.#client, id, timeoutAt);
  }

  #startRecord({ id }: DurablePromise) {
    return this.#client.call(getOf(startRecordId(id, this.scope.key)));
  }

  async #recordStart({ id, job, timeoutAt }: DurablePromise): Promise<void> {
    const { key, request } = this.scope;
    const tags = { ...ownTags(this.#names.owner, job), ...(request !== "" && { [REQUEST_TAG]: request }) };
    await this.#client.call(childOf(startRecordId(id, key), timeoutAt, { tags }));
  }

  /** Claims a shared job, so that nobody else cancels it. Returns its current promise. */
  async #claim(promise: DurablePromise, claimant = this.scope.claimant): Promise<DurablePromise> {
    if (promise.state !== "pending") return promise;
    const isClaimed = await this.#claimsOf(promise).claim(claimant);
    return isClaimed ? promise : ((await this.#cancel(promise))?.promise ?? promise);
  }

  /**
   * Reserves the job's share of its caller's quota, and enters the job in the caller's record. Resolves to the tag of the
   * reservation, and whether the record knew the job as pending; undefined without a record.
   *
   * @throws {NotStarted} for a job that does not exist, when the caller has reached a limit
   */
  async #reserve(name: string, started: StartedJob, countOf: () => number) {
    const { quota, storage, chargeStarts } = this.scope;
    const record = this.#record;
    if (!record) {
      if (quota > 0) throw new NotStarted(NO_RECORD);
      return undefined;
    }
    const { startedAt: now, due } = started;
    const start = { duration: due - now, now, count: countOf() };
    const reservation = reservationFor(start);
    const most = { jobs: quota, bytes: storage };
    const isPossible = start.count <= quota || quota === 0;
    const answer = isPossible ? await record.reserve({ ...started, ...reservation }, most) : "full";
    if (answer !== "reserved" && answer !== "known" && !(await this.get(name))) throw exceeded(answer, most, start);
    // If this throws, the reservation is released by itself, as its job does not exist.
    if (answer === "reserved" && start.count > 1) await chargeStarts(start.count);
    return { tag: tagOf(reservation), isKnown: answer === "known" };
  }

  async #cancel({ id, job }: DurablePromise): Promise<{ promise: DurablePromise; isOurs: boolean } | undefined> {
    // Comes first: if this process crashes before the settlement below, the clean-up cancels the job.
    if (cleansUp(job)) await this.#cleanUp(id);
    const by = crypto.randomUUID();
    const data = { id, state: "rejected_canceled" as const, value: encodeValue({ by }) };
    const record = await this.#client.call({ kind: "promise.settle", data });
    const promise = record && this.#names.decode(record);
    const isOurs = (promise?.value as { by?: unknown } | undefined)?.by === by;
    // The job is cancelled even if this fails: a record that missed it looks at the promise before it refuses a start.
    const { key, records } = this.scope;
    if (promise && isOurs)
      await records?.(key)
        .note([this.#entryOf(promise)], true)
        .catch(() => {});
    return promise && { promise, isOurs };
  }

  #scoped(scope: Partial<Scope>): RemoteStore {
    return new RemoteStore(this.#endpoint, this.#names.jobs, scope, this.#client, this.#shared);
  }
}

/** Whether a promise says all about its job. Otherwise {@link RemoteStore.get} also reads its resumption and clean-up. */
const isWhole = ({ earlier, state, job }: DurablePromise): boolean =>
  earlier === undefined && (state !== "rejected_canceled" || !cleansUp(job));

const withoutSeed = (resumption: Resumption) => ("from" in resumption ? { from: resumption.from } : resumption);

const whole = (promise: DurablePromise | undefined) => (promise && isWhole(promise) ? promise : undefined);

/** Whether a worker cleans up after a cancelled job. Timers, waits of the edge and jobs of foreign groups end at once. */
export const cleansUp = ({ expectedAt, group, runs }: Job): boolean =>
  !expectedAt && group === undefined && runs !== "edge";
