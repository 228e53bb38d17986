import type { Caller } from "../../core/author/caller.ts";
import type {
  CallerLimits,
  ListedJob,
  ListQuery,
  Reserved,
  SeenJob,
  StartedJob,
} from "../../core/jobs/caller-record.ts";
import { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { Names } from "../../core/jobs/names.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { Reported } from "../../core/jobs/reports.ts";
import { retentionOf } from "../../core/jobs/retention.ts";
import { getOf } from "../../core/resonate/codec.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/resonate/connection/failures.ts";
import { callsOf } from "../../core/resonate/object-calls.ts";
import { ObjectSql, type ObjectStorage } from "../../core/resonate/object-storage.ts";
import { pause } from "../../core/resonate/pacing/backoff.ts";
import {
  RoomList,
  type RoomPage,
  type RoomPosition,
  type RoomRow,
  readRoom,
  writeRoom,
} from "../../features/backup/room-rows.ts";
import { cleanUp } from "../../features/clean-up/start.ts";
import {
  EventLog,
  type LoggedEvent,
  type LogPage,
  type Narrowed,
  type Wanted,
} from "../../features/events/event-log.ts";
import { keptFilesOf } from "../../features/files/kept.ts";
import { Figures } from "../../features/operators/caller-figures.ts";
import type { OperateCalls } from "../../features/operators/calls.ts";
import { Operating } from "../../features/operators/operating.ts";
import { OperatorSettings } from "../../features/operators/operator-settings.ts";
import { Pages } from "../../features/pages/sessions.ts";
import { endedEvent, isTold, JOB_ENDED, type Occurrence, occurrenceOf } from "../../features/schedules/occurrence.ts";
import { schedule } from "../../features/schedules/schedule.ts";
import { Schedules } from "../../features/schedules/schedules.ts";
import { callbackProblem, isLoopbackUrl, isPublicHost } from "../../features/web-hooks/address.ts";
import { CODES } from "../../features/web-hooks/codes.ts";
import {
  type Granted,
  type HookKey,
  type HookRequest,
  type Refused,
  type SubscriptionError,
  WebHooks,
} from "../../features/web-hooks/web-hooks.ts";
import { isBlocked, isKeyBlocked } from "../auth/blocked.ts";
import { type Config, readConfig } from "../config.ts";
import { EdgeLog } from "../http/log.ts";
import { jobFeatures } from "../job-features.ts";
import { type Answer, type CallerMethods, Callers, callersOf, type EventPage, type EventQuery } from "./callers.ts";
import { deployed } from "./deployed.ts";
import { createFeed, type ListenerNamespace } from "./feed.ts";
import { JobLooks, LOOKS } from "./job-looks.ts";
import { JobTable } from "./job-table.ts";
import { Recovery } from "./recovery.ts";
import { Listeners, type Seen } from "./seen.ts";
import { SubscriptionLooks } from "./subscription-looks.ts";
import { INTEREST, Watch } from "./watch.ts";

/** How long the Resonate server may take to answer, in milliseconds. */
const PATIENCE = 5_000;

/** The most steps of the recovery in one call or alarm. */
const STEPS = 8;

/** The pause before the next chores: while work is left, and otherwise. In milliseconds. */
const SOON = 1_000;
const DAY = 86_400_000;

/** The pause after a failure to make the schedules of definitions, in milliseconds. */
const UNDEPLOYED = 10_000;

/** How many of a caller's newest jobs must be gone before the caller counts as forgotten. */
const FORGOTTEN = 5;

/** How long an alarm waits for deliveries, in milliseconds. Slower ones continue after it. */
const DELIVERING = 5_000;

/** How long the operators' settings are cached, in milliseconds. */
const SETTINGS = 10_000;

/**
 * The record of one caller of a deployment, which the class that is bound as `CALLER` loads: see `lazy-objects.ts`.
 *
 * Quota and list are derived, and the promises decide. Looks at the promises correct a lost storage, a reservation whose edge
 * died before it created the promise, and an end that was not reported. Events, subscriptions and cursors exist only here. An
 * object of the same class lists the callers' objects, for backups.
 */
export class CallerObject implements CallerMethods {
  readonly #storage: ObjectStorage;
  readonly #sql: ObjectSql;
  readonly #client: ResonateClient;
  readonly #jobs: JobTable;
  readonly #log: EventLog;
  readonly #feeds: ProgressFeeds;
  readonly #looks: JobLooks;
  readonly #watch: Watch;
  readonly #hooks: WebHooks;
  readonly #schedules: Schedules;
  readonly #rooms: RoomList;
  readonly #subscriptionLooks: SubscriptionLooks;
  /** Until when somebody who polls or streams wants the outputs of jobs, in milliseconds since the epoch. */
  #toldUntil = 0;
  readonly #recovery: Recovery;
  readonly #config: Config;
  readonly #listeners = new Listeners();
  /** Wake the calls that wait for events. */
  readonly #waiting = new Set<() => void>();
  #begun: Promise<void> | undefined;
  #catchingUp: Promise<void> | undefined;
  #deployed: Promise<void> | undefined;
  #isListed = false;
  /** The calls to the Resonate server: all of them, and those that were charged to the caller. */
  readonly #asked = { all: 0, charged: 0 };
  readonly #env: object;
  readonly #settings: OperatorSettings;
  #operating: Operating | undefined;
  /** The objects of the deployment's callers; undefined where `CALLER` is not bound. */
  readonly #callers: Callers | undefined;
  readonly #figures: Figures;

  constructor(state: { storage: ObjectStorage }, env: object) {
    const config = readConfig(env);
    const endpoint = endpointOf(config);
    const sql = new ObjectSql(state.storage);
    this.#storage = state.storage;
    this.#sql = sql;
    const onRequest = () => {
      this.#asked.all += 1;
    };
    this.#client = new ResonateClient({ ...endpoint, timeout: PATIENCE, onRequest });
    this.#config = config;
    this.#callers = callersOf(config);
    this.#env = env;
    const operated = config.isOperated ? this.#callers : undefined;
    this.#settings = new OperatorSettings(
      operated && (() => operated.operate("settings")),
      config.BLOCKED_CALLERS ?? [],
      SETTINGS,
    );
    this.#jobs = new JobTable(sql, (job) => this.#log.append(endedEvent(job, this.#nameOf(job.id)), Date.now()));
    this.#log = new EventLog(sql);
    this.#feeds = new ProgressFeeds(this.#client);
    this.#hooks = new WebHooks({
      sql,
      log: this.#log,
      encryptionKeys: config.ENCRYPTION_KEYS,
      jobsOf: (narrowed) => this.#jobsOf(narrowed),
      tell: (event, caller) => this.#tell(event, caller),
      fetchTo: (url) => this.#fetchTo(url),
      endOf: (caller, name) => this.#endOf(caller, name),
      ended: this.#forbidden("its owner has ended it on a page"),
      arm: () => this.#arm(),
    });
    this.#recovery = new Recovery(this.#jobs, this.#client, endpoint.namespace);
    this.#looks = new JobLooks({
      ...{ jobs: this.#jobs, log: this.#log, client: this.#client, feeds: this.#feeds, env },
      keep: retentionOf(config.RETENTION_DAYS) ?? Number.POSITIVE_INFINITY,
      key: () => this.#key,
      nameOf: (id) => this.#nameOf(id),
      isToldWanted: () => this.#toldUntil > Date.now() || this.#hooks.names.some(isTold),
      onNews: () => this.#onNews(),
    });
    const { LISTENER } = config;
    this.#watch = new Watch({
      source: LISTENER && createFeed(LISTENER as ListenerNamespace),
      ...{ key: () => this.#key, jobs: this.#jobs, looks: this.#looks },
    });
    this.#schedules = new Schedules({
      sql,
      client: this.#client,
      feeds: this.#feeds,
      looks: this.#looks,
      namespace: endpoint.namespace,
      tools: deployed.tools,
      store: (isOwn) => this.#store(isOwn),
      log: new EdgeLog(config.LOG_LEVEL),
      nameOf: (id) => this.#nameOf(id),
      isBlocked: () => isKeyBlocked(this.#key, this.#settings.known.blocked, issuerIn(config)),
    });
    this.#figures = new Figures({
      callers: config.isOperated ? this.#callers : undefined,
      ...{ sql, jobs: this.#jobs, hooks: this.#hooks, most: config.MAX_STORED_BYTES },
      key: () => this.#recovery.key,
      arm: () => this.#arm(),
    });
    this.#rooms = new RoomList(sql, (key) => (this.#callers as Callers).of(key));
    this.#subscriptionLooks = new SubscriptionLooks({
      ...{ jobs: this.#jobs, looks: this.#looks, watch: this.#watch },
      names: () => this.#hooks.names,
      isLocal: isLocal(config),
    });
  }

  reserve(key: string, job: StartedJob, most: CallerLimits): Promise<Answer<Reserved>> {
    return this.#charged(async () => {
      await this.#begin(key);
      if (most.bytes > 0) await this.#looks.size(most.bytes);
      const answer = await this.#reserve(job, most);
      if (answer === "full") await this.#looks.lookIn(job.period);
      else if (answer === "stored") await this.#looks.lookAt(this.#looks.overdue(LOOKS));
      else return answer;
      return this.#reserve(job, most);
    });
  }

  /** Adds to an answer the number of calls to the Resonate server. Concurrent answers do not charge the same call twice. */
  async #charged<T>(work: () => Promise<T>): Promise<Answer<T>> {
    const before = this.#asked.all;
    const answer = await answered(work);
    const asked = this.#asked.all - Math.max(before, this.#asked.charged);
    this.#asked.charged = this.#asked.all;
    return { ...answer, asked };
  }

  async note(jobs: readonly SeenJob[], onlyKnown: boolean): Promise<void> {
    await this.#looks.note(jobs, onlyKnown);
  }

  async heard(key: string, ended: readonly Reported[], started: readonly Reported[]): Promise<void> {
    // This is the object of callers without identity, and nobody has asked it for events.
    if (key === "" && this.#recovery.key === undefined) return;
    await this.#begin(key);
    await this.#looks.heard(this.#config.RESONATE_NAMESPACE + key, ended, started);
  }

  /** Called when the log may have new events. */
  #onNews(): void {
    this.#figures.send();
    for (const wake of this.#waiting) wake();
    if (this.#hooks.names.length > 0) this.#deliver();
  }

  async stored(): Promise<number> {
    return this.#looks.stored();
  }

  async forget(id: string, isHidden: boolean): Promise<void> {
    this.#jobs.transaction(() => this.#jobs.forget(id, isHidden));
    // The sweep removes files that this leaves behind.
    if (!isHidden)
      await keptFilesOf(this.#env)
        ?.removeAll(id)
        .catch(() => {});
  }

  deploy(): Promise<Answer<void>> {
    return answered(async () => {
      await this.#begin("");
      await this.#makeSchedules();
    });
  }

  /** Makes the schedules of the definitions, once per instance: a new deployment has new instances. */
  async #makeSchedules(): Promise<void> {
    this.#deployed ??= this.#schedules.deploy().catch((error) => {
      this.#deployed = undefined;
      throw error;
    });
    await this.#deployed;
  }

  async isBlocked(caller: Caller): Promise<boolean> {
    return isBlocked(caller, (await this.#settings.get()).blocked);
  }

  list(key: string, query: ListQuery): Promise<Answer<ListedJob[]>> {
    return answered(async () => {
      await this.#begin(key);
      return this.#jobs.list(query, this.#config.RESONATE_NAMESPACE.length + key.length);
    });
  }

  events(caller: Caller, { narrowed, wait = 0, ...query }: EventQuery): Promise<Answer<EventPage>> {
    return answered(async () => {
      await this.#begin(caller.key);
      const until = Date.now() + wait;
      this.#watch.extend(until + INTEREST, query.name !== JOB_ENDED);
      this.#listeners.note({ name: query.name, narrowed }, until + INTEREST);
      if (isTold(query.name)) this.#toldUntil = until + INTEREST;
      const wanted = { ...query, ...this.#jobsOf(narrowed) };
      let page: LogPage = this.#log.read(wanted, Date.now());
      while (page.events.length === 0 && !page.truncated && !page.hasMore && Date.now() < until) {
        await this.#news(until - Date.now());
        page = this.#log.read({ ...wanted, cursor: page.cursor }, Date.now());
      }
      const events = await Promise.all(
        page.events.map(async (event) => ({ ...(await this.#tell(event, caller)), cursor: event.cursor })),
      );
      return { ...page, events, isBusy: this.#jobs.pending(1).length > 0 };
    });
  }

  subscribe(caller: Caller, request: HookRequest): Promise<Answer<Granted | Refused>> {
    return answered(async () => {
      const problem = callbackProblem(request.url, this.#config.ALLOW_LOOPBACK_CALLBACKS === "1");
      if (problem !== undefined) return { refused: "InvalidUrl", data: { problem } } satisfies Refused;
      await this.#begin(caller.key);
      const granted = await this.#hooks.subscribe(caller, request);
      if ("refused" in granted) return granted;
      this.#subscriptionLooks.begin();
      this.#deliver();
      await this.#arm();
      return granted;
    });
  }

  unsubscribe(caller: Caller, key: HookKey): Promise<Answer<object | Refused>> {
    return answered(async () => {
      await this.#begin(caller.key);
      return this.#hooks.unsubscribe(caller, key);
    });
  }

  seen(key: string, job?: string, end?: string): Promise<Answer<Seen>> {
    return answered(async () => {
      await this.#begin(key);
      if (end !== undefined) {
        this.#hooks.end(end);
        this.#deliver();
      }
      const [subscriptions, listeners] = [this.#hooks.list(), this.#listeners.list(Date.now())];
      if (job === undefined) return { subscriptions, listeners, schedules: this.#schedules.list() };
      const { jobs: ids = [] } = this.#jobsOf({ jobNames: [job] });
      const isTold = ({ narrowed }: { narrowed: Narrowed }) => {
        const wanted = this.#jobsOf(narrowed);
        return ids.some((id) => this.#jobs.isAmong(id, wanted));
      };
      return { subscriptions: subscriptions.filter(isTold), listeners: listeners.filter(isTold), schedules: [] };
    });
  }

  operate(call: keyof OperateCalls, given: unknown[]): Promise<Answer<unknown>> {
    return answered(async () => (this.#operated[call] as (...given: unknown[]) => unknown)(...given));
  }

  get #operated(): Operating {
    if (!this.#operating) this.#jobs.set("role", "operate");
    this.#operating ??= new Operating({
      ...{ storage: this.#storage, client: this.#client, config: this.#config, env: this.#env },
      deployed,
      cancelFeatures: [cleanUp],
      fetchTo: (url) => this.#fetchTo(url),
    });
    return this.#operating;
  }

  async listRoom(key: string): Promise<void> {
    this.#rooms.add(key);
  }

  readRooms(after: RoomPosition | undefined): Promise<RoomPage> {
    return this.#rooms.read(after);
  }

  writeRooms(rows: readonly RoomRow[]): Promise<void> {
    return this.#rooms.write(rows);
  }

  forgetRoom(key: string): Promise<void> {
    return this.#rooms.forget(key);
  }

  async rows(...position: [...RoomPosition]): Promise<RoomPage> {
    return readRoom(this.#sql, position);
  }

  async restore(rows: readonly RoomRow[]): Promise<void> {
    writeRoom(this.#sql, rows, Date.now(), () => this.#jobs.clear());
    this.#reset();
    await this.#arm();
  }

  async clear(): Promise<void> {
    this.#jobs.clear();
    this.#reset();
  }

  /** Drops all caches after the stored rows were replaced. */
  #reset(): void {
    this.#jobs.reset();
    this.#hooks.reset();
    this.#subscriptionLooks.reset();
    this.#isListed = false;
  }

  /** Adds this object to the deployment's list of callers' objects, which a backup reads. */
  async #enlist(): Promise<void> {
    const { key } = this.#recovery;
    if (this.#isListed || key === undefined) return;
    this.#isListed = true;
    if (this.#jobs.get("listed") !== undefined) return;
    try {
      await this.#callers?.rooms.listRoom(key);
      this.#jobs.set("listed", "1");
    } catch {
      this.#isListed = false; // The next call lists it.
    }
  }

  /** Delivers in the background what is due. */
  #deliver(): void {
    const over = this.#settings.get().then(() => this.#hooks.run());
    over.then(() => this.#arm()).catch(() => {}); // The alarm tries again.
  }

  /** Makes an event of the log what its receivers get. */
  #tell(event: LoggedEvent, caller: Caller): Promise<Occurrence> {
    const { RESONATE_NAMESPACE: namespace } = this.#config;
    const pages = new Pages(this.#config, {} as never);
    const pageOf = (name: string) => pages.urlOf(name, caller);
    const labels = this.#jobs.labelsOf(event.job);
    return occurrenceOf(event, {
      labels,
      isLast: this.#log.isLast(event),
      client: this.#client,
      feeds: this.#feeds,
      namespace,
      key: caller.key,
      jobs: deployed.jobs,
      pageOf,
    });
  }

  /** The filter in the log's terms. A job name stands for two promises: the caller's own job, and a shared one. */
  #jobsOf({ jobNames, ...rest }: Narrowed): Wanted {
    const { RESONATE_NAMESPACE: namespace } = this.#config;
    return { jobs: jobNames?.flatMap((name) => [namespace + this.#key + name, namespace + name]), ...rest };
  }

  /** Why the caller's subscriptions to a type of events must end; undefined while they continue. */
  #endOf({ id, label }: Caller, name: string): SubscriptionError | undefined {
    const { auth, EVENT_ERRORS } = this.#config;
    if (isBlocked({ id, label }, this.#settings.known.blocked)) return this.#forbidden("the caller is blocked");
    const isGone = auth.AUTH_MODE === "bearer" && !auth.BEARER_TOKENS.some(({ name }) => name === label);
    if (isGone || auth.AUTH_MODE === "none") return this.#forbidden("the caller has no token any more");
    const isOffered =
      name.startsWith("job.") || deployed.jobs.some(({ events = [] }) => events.some((one) => one.name === name));
    return isOffered ? undefined : { code: CODES[EVENT_ERRORS].NotFound, message: "NotFound", data: { kind: "event" } };
  }

  #forbidden(reason: string): SubscriptionError {
    return { code: CODES[this.#config.EVENT_ERRORS].Forbidden, message: "Forbidden", data: { reason } };
  }

  /** The `fetch` for the receiver at an address. With `CALLBACKS` it reaches public addresses alone. */
  #fetchTo(url: string): typeof fetch {
    const { CALLBACKS, ALLOW_LOOPBACK_CALLBACKS } = this.#config;
    const isOwn = ALLOW_LOOPBACK_CALLBACKS === "1" && isLoopbackUrl(url);
    return CALLBACKS && !isOwn ? (input, init) => CALLBACKS.fetch(input, init) : (input, init) => fetch(input, init);
  }

  /** The caller's store, for jobs that the object itself starts. `isOwn`: no quota applies. */
  #store(isOwn: boolean): RemoteStore {
    const { MAX_JOBS: jobs, MAX_STORED_BYTES: bytes, RESONATE_NAMESPACE, isOperated } = this.#config;
    const callers = new Callers({ idFromName: () => ({}), get: () => callsOf(this) }, RESONATE_NAMESPACE);
    const records = callers.records(isOwn ? { jobs: 0, bytes: 0 } : { jobs, bytes });
    const features = jobFeatures({
      jobs: deployed.jobs,
      records,
      isHeard: () => isOwn,
      reportStart: isOperated ? this.#callers?.reportStart : undefined,
    });
    const options = { records, client: this.#client };
    const store = RemoteStore.of(endpointOf(this.#config), deployed.jobs, features, options);
    return store.as({ key: this.#key }, crypto.randomUUID());
  }

  /** Sets the alarm to the earliest time at which work is due. */
  async #arm(): Promise<void> {
    const chores = Number(this.#jobs.get("chores") ?? 0);
    const at = Math.min(
      chores,
      this.#subscriptionLooks.nextAt(),
      this.#hooks.nextAt(),
      this.#schedules.nextAt(),
      this.#figures.nextAt(),
    );
    await this.#storage.setAlarm(Math.max(at, Date.now()));
  }

  /** Waits for possible new events, at most `ms` milliseconds. */
  async #news(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }

  /** Continues the recovery, looks at outdated jobs, finds and delivers events, and fires schedules. */
  async alarm(): Promise<void> {
    if (this.#recovery.key === undefined) {
      return this.#jobs.get("role") === "operate" ? this.#operated.alarm() : undefined;
    }
    const now = Date.now();
    // If this fails, the next alarm tries again. Until then no schedule fires: its definition may be gone.
    const isDeployed =
      this.#recovery.key !== "" ||
      (await this.#makeSchedules().then(
        () => true,
        () => false,
      ));
    if (now >= Number(this.#jobs.get("chores") ?? 0)) {
      if (await this.#isForgotten().catch(() => false)) {
        const key = this.#key;
        await this.clear();
        return this.#callers?.rooms.forgetRoom(key);
      }
      await this.#doChores(now);
    }
    await this.#subscriptionLooks.run(now);
    await this.#settings.get();
    await Promise.all([Promise.race([this.#hooks.run(), pause(DELIVERING)]), isDeployed && this.#schedules.run()]);
    this.#figures.send();
    await this.#arm();
    if (!isDeployed) await this.#storage.setAlarm(Date.now() + UNDEPLOYED);
  }

  /** Whether an operator has removed the caller's promises: the one that began the record, and those of its newest jobs. */
  async #isForgotten(): Promise<boolean> {
    if (!(await this.#recovery.isMarkGone())) return false;
    const ids = this.#jobs.newest(FORGOTTEN);
    const found = await Promise.all(ids.map((id) => this.#client.call(getOf(id))));
    return found.every((record) => record === undefined);
  }

  async #doChores(now: number): Promise<void> {
    await this.#enlist();
    await this.#catchUp();
    const stale = this.#looks.overdue(LOOKS);
    await this.#looks.lookAt(stale).catch(() => {}); // The next alarm looks again.
    const isLong = this.#log.prune(now);
    const isBusy = this.#recovery.isPending || stale.length === LOOKS || isLong;
    this.#jobs.set("chores", String(Date.now() + (isBusy ? SOON : DAY)));
  }

  /** Enters a job in the record, and follows it if it is new. */
  async #reserve(job: StartedJob, most: CallerLimits): Promise<Reserved> {
    const answer = this.#jobs.transaction(() => this.#jobs.reserve(job, most, Date.now()));
    if (answer !== "reserved") return answer;
    this.#figures.onStart();
    this.#watch.onStart();
    if (this.#subscriptionLooks.onStart() || job.kind === schedule.kind) await this.#arm();
    return answer;
  }

  /** Begins the record of a caller, and waits for some steps of its recovery. */
  async #begin(key: string): Promise<void> {
    if (this.#recovery.key === undefined) {
      this.#begun ??= this.#recovery.begin(key).finally(() => {
        this.#begun = undefined;
      });
      await this.#begun;
      this.#jobs.set("chores", String(Date.now() + (this.#recovery.isPending ? SOON : DAY)));
      await this.#arm();
    }
    if (!this.#isListed) void this.#enlist();
    if (this.#recovery.isPending) await this.#catchUp();
  }

  /** Takes some steps of the recovery. The next call or alarm repeats a step that fails. */
  async #catchUp(): Promise<void> {
    const steps = async () => {
      for (let n = 0; n < STEPS && this.#recovery.isPending; n++) await this.#recovery.step();
    };
    this.#catchingUp ??= steps()
      .catch(() => {})
      .finally(() => {
        this.#catchingUp = undefined;
      });
    await this.#catchingUp;
  }

  /** The caller's key; empty while it is not known. */
  get #key(): string {
    return this.#recovery.key ?? "";
  }

  #nameOf(id: string): string {
    return new Names([], this.#config.RESONATE_NAMESPACE, this.#key).nameIn(id);
  }
}

const issuerIn = ({ auth }: Config) => (auth.AUTH_MODE === "oauth" ? auth.OAUTH_ISSUER : undefined);

/** Whether the Resonate server is on this machine or its network. */
function isLocal({ RESONATE, RESONATE_URL }: Config): boolean {
  return !RESONATE && !isPublicHost(new URL(RESONATE_URL).hostname);
}

async function answered<T>(work: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { done: await work() };
  } catch (error) {
    if (!(error instanceof ResonateUnavailable)) throw error;
    const { message, status } = error;
    return { failed: { message, status, isRefused: error instanceof ResonateRefused } };
  }
}
