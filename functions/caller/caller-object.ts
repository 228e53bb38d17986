import type { Caller } from "../../core/definitions/caller.ts";
import {
  type ListedJob,
  type ListQuery,
  type Most,
  type Reserved,
  type SeenJob,
  type StartedJob,
  startedJob,
} from "../../core/jobs/caller/caller-record.ts";
import { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { Names } from "../../core/jobs/names.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { Reported } from "../../core/jobs/reports.ts";
import { retentionOf } from "../../core/jobs/retention.ts";
import { ResonateClient } from "../../core/store/connection/client.ts";
import { endpointOf } from "../../core/store/connection/endpoint.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/store/connection/failures.ts";
import { pause } from "../../core/store/pacing/backoff.ts";
import { type Config, readConfig } from "../app/config.ts";
import { deployed } from "../app/deployed.ts";
import { isBlocked } from "../auth/blocked.ts";
import { keptFilesOf } from "../files/kept.ts";
import { EdgeLog } from "../http/log.ts";
import { SharedValue } from "../http/shared-value.ts";
import { createFeed, type ListenerNamespace } from "../listener/feed.ts";
import { ALMOST } from "../operate/alerts.ts";
import type { OperateCalls, Settings } from "../operate/calls.ts";
import { Operating } from "../operate/operating.ts";
import { Pages } from "../pages/sessions.ts";
import { schedule } from "../schedules/schedule.ts";
import { type Answer, type CallerMethods, Callers, callersOf, type EventPage, type EventQuery } from "./callers.ts";
import { EventLog, type LoggedEvent, type LogPage, type Narrowed, type Wanted } from "./event-log.ts";
import { JobLooks, LOOKS } from "./job-looks.ts";
import { JobTable } from "./job-table.ts";
import { RoomList, type RoomPage, type RoomPosition, type RoomRow, readRoom, writeRoom } from "./room-rows.ts";
import { endedEvent, isTold, JOB_ENDED, type Occurrence, occurrenceOf } from "./schedules/occurrence.ts";
import { Schedules } from "./schedules/schedules.ts";
import { Listeners, type Seen } from "./seen.ts";
import { type CallerStorage, CountedStorage } from "./storage.ts";
import { Takeover } from "./takeover.ts";
import { Watch } from "./watch.ts";
import { callbackProblem, isLoopbackUrl, isPublicHost } from "./webhooks/address.ts";
import { CODES } from "./webhooks/codes.ts";
import {
  type Granted,
  type HookKey,
  type HookRequest,
  type Refused,
  type SubscriptionError,
  WebHooks,
} from "./webhooks/web-hooks.ts";

/** How long the Resonate server may take to answer, in milliseconds. */
const PATIENCE = 5_000;

/** How many steps of the takeover a call waits for, and an alarm does. */
const STEPS = 8;

/** How long until the next steps, and until the next look at what is out of date, in milliseconds. */
const SOON = 1_000;
const DAY = 86_400_000;

/** How long after a start jobs are looked at because of subscriptions, and the longest pause; in milliseconds. */
const HEARING = { first: 30_000, most: 3_600_000 };

/** The pause after the schedules of definitions could not be made, in milliseconds. */
const UNDEPLOYED = 10_000;

/** How many of the newest jobs are gone of a caller that was forgotten. */
const FORGOTTEN = 5;

/** How long an alarm waits for deliveries, in milliseconds. Those that take longer go on. */
const DELIVERING = 5_000;

/** For how long the caller's jobs are followed after it has asked for events, in milliseconds. */
const INTEREST = 60_000;

/** For how long what operators have set is remembered, in milliseconds. */
const SETTINGS = { fresh: 10_000, failed: 1_000, turn: 3_000 };

/** How often operators are told of the caller, in milliseconds, and up to which number jobs are counted for that. */
const FIGURES = 60_000;
const MOST_RUNNING = 1_001;

interface Runtime {
  DurableObject: new (state: unknown, env: object) => object;
}

/** What is called from elsewhere extends a class of the runtime's. Node has none, and can still import this file. */
const { DurableObject }: Runtime = await import("cloudflare:workers" as string).catch(() => ({
  DurableObject: Object,
}));

/**
 * What belongs to one caller of a deployment and not to a job: its quota and its list of jobs, in the SQL storage of a Durable
 * Object. A Worker's entry exports it beside its default export, and `wrangler.toml` binds it as `CALLER`.
 *
 * Quota and list are derived. The promises decide: an object whose storage is lost, a reservation whose edge died before it
 * created the promise, and an end that nobody told are put right by looks at them. Events, subscriptions and cursors are only
 * here; an object of the same class lists the callers' objects, for backups.
 *
 * @example
 * const entry = { CallerObject, default: createEdge({ name: "my-server", version: "1.0.0", tools: [waitForSite] }) };
 */
export class CallerObject extends DurableObject implements CallerMethods {
  readonly #storage: CountedStorage;
  readonly #client: ResonateClient;
  readonly #jobs: JobTable;
  readonly #log: EventLog;
  readonly #feeds: ProgressFeeds;
  readonly #looks: JobLooks;
  readonly #watch: Watch;
  readonly #hooks: WebHooks;
  readonly #schedules: Schedules;
  readonly #rooms: RoomList;
  /** When jobs are looked at next because somebody has subscribed to events, and after which pause; undefined where nobody has. */
  #hearing: { at: number; pause: number } | undefined;
  /** Until when somebody who does not subscribe wants to know what jobs tell; in milliseconds since the epoch. */
  #toldUntil = 0;
  readonly #takeover: Takeover;
  readonly #config: Config;
  readonly #listeners = new Listeners();
  /** Those who wait for events. */
  readonly #waiting = new Set<() => void>();
  #begun: Promise<void> | undefined;
  #catchingUp: Promise<void> | undefined;
  #deployed: Promise<void> | undefined;
  #isListed = false;
  /** The calls to the Resonate server, and those that a caller has been charged for. */
  readonly #asked = { all: 0, charged: 0 };
  readonly #env: object;
  readonly #settings = new SharedValue<Settings>(SETTINGS);
  /** The callers who are refused, by the configuration and by operators. */
  #blocked: readonly string[];
  #operating: Operating | undefined;
  /** Those of the deployment, of whom this is one; undefined where they cannot be reached. */
  readonly #callers: Callers | undefined;
  /** What operators are to be told of the caller, and when. */
  readonly #figure = { started: 0, at: 0, signs: "", isLate: false };

  constructor(state: { storage: CallerStorage }, env: object) {
    super(state, env);
    const config = readConfig(env);
    const endpoint = endpointOf(config);
    const storage = new CountedStorage(state.storage);
    this.#storage = storage;
    const onRequest = () => {
      this.#asked.all += 1;
    };
    this.#client = new ResonateClient({ ...endpoint, timeout: PATIENCE, onRequest });
    this.#config = config;
    this.#callers = callersOf(config);
    this.#env = env;
    this.#blocked = config.BLOCKED_CALLERS ?? [];
    this.#jobs = new JobTable(storage, (job) => this.#log.append(endedEvent(job, this.#nameOf(job.id)), Date.now()));
    this.#log = new EventLog(storage);
    this.#feeds = new ProgressFeeds(this.#client);
    this.#hooks = new WebHooks({
      storage,
      log: this.#log,
      encryptionKeys: config.ENCRYPTION_KEYS,
      jobsOf: (narrowed) => this.#jobsOf(narrowed),
      tell: (event, caller) => this.#tell(event, caller),
      fetchTo: (url) => this.#fetchTo(url),
      endOf: (caller, name) => this.#endOf(caller, name),
      ended: this.#forbidden("its owner has ended it on a page"),
      arm: () => this.#arm(),
    });
    this.#takeover = new Takeover(this.#jobs, this.#client, endpoint.namespace);
    this.#looks = new JobLooks({
      ...{ jobs: this.#jobs, log: this.#log, client: this.#client, feeds: this.#feeds, env },
      keep: retentionOf(config.RETENTION_DAYS) ?? Number.POSITIVE_INFINITY,
      key: () => this.#takeover.key ?? "",
      nameOf: (id) => this.#nameOf(id),
      isToldWanted: () => this.#toldUntil > Date.now() || this.#hooks.names.some(isTold),
      onNews: () => this.#onNews(),
    });
    const { LISTENER } = config;
    this.#watch = new Watch({
      source: LISTENER && createFeed(LISTENER as ListenerNamespace),
      key: () => this.#takeover.key ?? "",
      pending: (limit) => this.#jobs.pending(limit),
      leastSeen: (limit) => this.#jobs.leastSeen(limit),
      look: (ids) => this.#looks.lookAt(ids),
      listen: (id, channel) => this.#looks.listen(id, channel),
      readFeed: (job, channel) => this.#looks.readFeed(job, channel),
    });
    this.#schedules = new Schedules({
      storage,
      jobs: this.#jobs,
      client: this.#client,
      feeds: this.#feeds,
      namespace: endpoint.namespace,
      tools: deployed.tools,
      store: (isOwn) => this.#store(isOwn),
      log: (message, fields) => new EdgeLog(config.LOG_LEVEL).error(message, fields),
      nameOf: (id) => this.#nameOf(id),
      look: (id) => this.#looks.lookAt([id]),
      note: (record) => this.note([startedJob(record, this.#takeover.key ?? "")], true),
    });
    this.#rooms = new RoomList(storage, (key) => (this.#callers as Callers).of(key));
    this.#hearing = this.#noted();
  }

  reserve(key: string, job: StartedJob, most: Most): Promise<Answer<Reserved>> {
    return this.#charged(async () => {
      await this.#begin(key);
      if (most.jobs > 0) await this.#takeover.seal(job.period);
      if (most.bytes > 0) await this.#looks.size(most.bytes);
      const answer = this.#reserve(job, most);
      if (answer === "reserved") {
        this.#figure.started += 1;
        this.#tellOperators();
        this.#watch.onStart();
        if (!this.#hearing || this.#hearing.pause > HEARING.first) {
          this.#hear();
          if (this.#hearing) await this.#arm();
        }
        if (job.kind === schedule.kind) await this.#arm();
      }
      if (answer === "full") await this.#looks.lookIn(job.period);
      else if (answer === "stored") await this.#looks.lookAt(this.#looks.overdue(LOOKS));
      else return answer;
      return this.#reserve(job, most);
    });
  }

  /** Answers, and says how many calls that took. Those of answers that are made at once are charged once. */
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
    // Nobody has asked for events of callers that are not told apart.
    if (key === "" && this.#takeover.key === undefined) return;
    await this.#begin(key);
    await this.#looks.heard(this.#config.RESONATE_NAMESPACE + key, ended, started);
  }

  /** Something may have been logged. */
  #onNews(): void {
    this.#tellOperators();
    for (const wake of this.#waiting) wake();
    if (this.#hooks.names.length > 0) this.#deliver();
  }

  async stored(): Promise<number> {
    return this.#looks.stored();
  }

  async forget(id: string, isHidden: boolean): Promise<void> {
    this.#jobs.transaction(() => this.#jobs.forget(id, isHidden));
    // A sweep removes what is left.
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

  /** Makes the schedules of the definitions, once in an object's life: a new deployment's is another. */
  async #makeSchedules(): Promise<void> {
    this.#deployed ??= this.#schedules.deploy().catch((error) => {
      this.#deployed = undefined;
      throw error;
    });
    await this.#deployed;
  }

  async isBlocked(caller: Caller): Promise<boolean> {
    await this.#askForBlocks();
    return isBlocked(caller, this.#blocked);
  }

  /** Asks whom operators have blocked, unless it was asked a moment ago. */
  async #askForBlocks(): Promise<void> {
    const { BLOCKED_CALLERS = [], isOperated } = this.#config;
    const callers = this.#callers;
    if (!isOperated || !callers) return;
    const found = await this.#settings.get(() => callers.operate("settings")).catch(() => undefined);
    if (found) this.#blocked = [...BLOCKED_CALLERS, ...found.value.blocked];
  }

  list(key: string, query: ListQuery): Promise<Answer<ListedJob[]>> {
    return answered(async () => {
      await this.#begin(key);
      if (this.#takeover.isUpgrade && !query.after) {
        await this.#takeover.lookAgain();
        await this.#catchUp();
      }
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
      this.#hear();
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
      fetchTo: (url) => this.#fetchTo(url),
    });
    return this.#operating;
  }

  /** Tells operators of the caller, once in a while, and at once when an alert begins or ends. */
  #tellOperators(): void {
    const { MAX_STORED_BYTES, isOperated } = this.#config;
    const { key } = this.#takeover;
    if (!isOperated || !this.#callers || !key) return;
    const { started, at, signs } = this.#figure;
    const [now, bytes] = [Date.now(), this.#jobs.stored];
    const failing = this.#hooks.list().filter(({ status }) => !status.active || status.lastError !== null).length;
    const seen = `${failing} ${bytes > ALMOST * MAX_STORED_BYTES}`;
    if (now < at && seen === signs) {
      if (!this.#figure.isLate) void this.#arm();
      this.#figure.isLate = true;
      return;
    }
    Object.assign(this.#figure, { started: 0, at: now + FIGURES, signs: seen, isLate: false });
    const running = this.#jobs.pending(MOST_RUNNING).length;
    const rows = this.#storage.written;
    this.#storage.written = 0;
    const figure = { key, started, running, bytes, failing, rows, isNews: seen !== signs };
    this.#callers.operate("figure", figure).catch(() => {
      this.#figure.started += started;
      this.#storage.written += rows;
    });
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
    return readRoom(this.#storage, position);
  }

  async restore(rows: readonly RoomRow[]): Promise<void> {
    writeRoom(this.#storage, rows, Date.now(), () => this.#jobs.clear());
    this.#reset();
    await this.#arm();
  }

  async clear(): Promise<void> {
    this.#jobs.clear();
    this.#reset();
  }

  /** What is stored was replaced. */
  #reset(): void {
    this.#jobs.reset();
    this.#log.reset();
    this.#hooks.reset();
    this.#hearing = this.#noted();
    this.#isListed = false;
  }

  /** Has the object noted among those of the deployment: a backup reads them all. */
  async #enlist(): Promise<void> {
    const { key } = this.#takeover;
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

  /** Delivers what is due, beside the object's other work. */
  #deliver(): void {
    const over = this.#askForBlocks().then(() => this.#hooks.run());
    over.then(() => this.#arm()).catch(() => {}); // The alarm delivers it.
  }

  /** What is told of an event. */
  #tell(event: LoggedEvent, caller: Caller): Promise<Occurrence> {
    const { RESONATE_NAMESPACE: namespace } = this.#config;
    const pages = new Pages(this.#config, {} as never);
    const pageOf = (name: string) => pages.urlOf(name, caller);
    const labels = this.#jobs.labelsOf(event.job);
    return occurrenceOf(event, {
      labels,
      client: this.#client,
      feeds: this.#feeds,
      namespace,
      key: caller.key,
      pageOf,
    });
  }

  /** What the log is asked for: a job's name is that of two promises, of the caller's own job and of a shared one. */
  #jobsOf({ jobNames, kinds, labels, schedule }: Narrowed): Wanted {
    const { RESONATE_NAMESPACE: namespace } = this.#config;
    const key = this.#takeover.key ?? "";
    return { jobs: jobNames?.flatMap((name) => [namespace + key + name, namespace + name]), kinds, labels, schedule };
  }

  /** Why the caller is to be told nothing more of events of a type; undefined where it is. */
  #endOf({ id, label }: Caller, name: string): SubscriptionError | undefined {
    const { auth, EVENT_ERRORS } = this.#config;
    if (isBlocked({ id, label }, this.#blocked)) return this.#forbidden("the caller is blocked");
    const isGone = auth.AUTH_MODE === "bearer" && !auth.BEARER_TOKENS.some(({ name }) => name === label);
    if (isGone || auth.AUTH_MODE === "none") return this.#forbidden("the caller has no token any more");
    const isOffered =
      name.startsWith("job.") || deployed.jobs.some(({ events = [] }) => events.some((one) => one.name === name));
    return isOffered ? undefined : { code: CODES[EVENT_ERRORS].NotFound, message: "NotFound", data: { kind: "event" } };
  }

  #forbidden(reason: string): SubscriptionError {
    return { code: CODES[this.#config.EVENT_ERRORS].Forbidden, message: "Forbidden", data: { reason } };
  }

  /** The way to the receiver at an address: where there is one, by a network of public addresses alone. */
  #fetchTo(url: string): typeof fetch {
    const { CALLBACKS, ALLOW_LOOPBACK_CALLBACKS } = this.#config;
    const isOwn = ALLOW_LOOPBACK_CALLBACKS === "1" && isLoopbackUrl(url);
    return CALLBACKS && !isOwn ? (input, init) => CALLBACKS.fetch(input, init) : (input, init) => fetch(input, init);
  }

  /**
   * Begins to hear how jobs end while somebody has subscribed. On one machine the listener's connection tells; in an account,
   * where a held connection is billed, looks do, with pauses that grow.
   */
  #hear(at = Date.now() + HEARING.first, pause = HEARING.first): void {
    const { names } = this.#hooks;
    const isWanted = names.length > 0 && this.#jobs.pending(1).length > 0;
    if (isWanted && isLocal(this.#config))
      this.#watch.extend(
        Date.now() + INTEREST,
        names.some((name) => name !== JOB_ENDED),
      );
    const isNoted = this.#hearing !== undefined;
    this.#hearing = isWanted ? { at, pause } : undefined;
    if (isWanted || isNoted) this.#jobs.set("hearing", JSON.stringify(this.#hearing ?? null));
  }

  /** An object that the platform has put away goes on with the pause that it had. */
  #noted() {
    return isLocal(this.#config) ? undefined : (JSON.parse(this.#jobs.get("hearing") ?? "null") ?? undefined);
  }

  /** Looks at jobs of which somebody wants to know how they end. */
  async #lookForEvents(now: number): Promise<void> {
    const { names } = this.#hooks;
    if (names.length === 0) return;
    const ids = this.#jobs.leastSeen(LOOKS);
    await this.#looks.lookAt(ids).catch(() => {}); // The next alarm looks again.
    if (names.some((name) => name !== JOB_ENDED)) {
      const running = ids.filter((id) => this.#jobs.isPending(id));
      await Promise.all(running.map(async (id) => this.#looks.noteFeed(id, await this.#feeds.newest(id)))).catch(
        () => {},
      );
    }
    const pause = isLocal(this.#config)
      ? HEARING.first
      : Math.min(HEARING.most, (this.#hearing?.pause ?? HEARING.first) * 1.5);
    this.#hear(Math.min(now + pause, (this.#jobs.nextDue(now) ?? Infinity) + SOON), pause);
  }

  /** The caller's jobs, as the object itself starts them. */
  #store(isOwn: boolean): RemoteStore {
    const { MAX_JOBS: quota, MAX_STORED_BYTES: storage, RESONATE_NAMESPACE, isOperated } = this.#config;
    const key = this.#takeover.key ?? "";
    const { record: records } = new Callers({ idFromName: () => ({}), get: () => this }, RESONATE_NAMESPACE);
    const limits = isOwn ? { isHeard: () => true } : { quota, storage };
    const scope = { ...limits, records, tellStart: isOperated ? this.#callers?.tellStart : undefined };
    const store = new RemoteStore(endpointOf(this.#config), deployed.jobs, scope, this.#client);
    return store.as({ id: "", key, label: "" }, crypto.randomUUID());
  }

  /** Sets the alarm to what is to be done next. */
  async #arm(): Promise<void> {
    // An object that was made anew does not know yet that somebody has subscribed.
    if (!this.#hearing) this.#hear();
    const chores = Number(this.#jobs.get("chores") ?? 0);
    const at = Math.min(
      chores,
      this.#hearing?.at ?? Infinity,
      this.#hooks.nextAt() ?? Infinity,
      this.#schedules.nextAt() ?? Infinity,
      this.#figure.isLate ? this.#figure.at : Infinity,
    );
    await this.#storage.setAlarm(Math.max(at, Date.now()));
  }

  /** Waits until jobs are noted, or so many milliseconds. */
  async #news(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }

  /** Goes on with the takeover, looks at what is out of date, looks for events, and delivers those that are due. */
  async alarm(): Promise<void> {
    if (this.#takeover.key === undefined) {
      return this.#jobs.get("role") === "operate" ? this.#operated.alarm() : undefined;
    }
    const now = Date.now();
    // The next alarm tries again; a schedule that its definition has no more must not fire before.
    const isDeployed =
      this.#takeover.key !== "" ||
      (await this.#makeSchedules().then(
        () => true,
        () => false,
      ));
    if (now >= Number(this.#jobs.get("chores") ?? 0)) {
      if (await this.#isForgotten().catch(() => false)) {
        const key = this.#takeover.key ?? "";
        await this.clear();
        return this.#callers?.rooms.forgetRoom(key);
      }
      await this.#doChores(now);
    }
    if (now >= (this.#hearing?.at ?? 0)) await this.#lookForEvents(now);
    await this.#askForBlocks();
    await Promise.all([Promise.race([this.#hooks.run(), pause(DELIVERING)]), isDeployed && this.#schedules.run()]);
    this.#tellOperators();
    await this.#arm();
    if (!isDeployed) await this.#storage.setAlarm(Date.now() + UNDEPLOYED);
  }

  /** Whether an operator has removed the caller's promises: that by which the record began, and those of its newest jobs. */
  async #isForgotten(): Promise<boolean> {
    if (!(await this.#takeover.isMarkerGone())) return false;
    const ids = this.#jobs.newest(FORGOTTEN);
    const found = await Promise.all(ids.map((id) => this.#client.call({ kind: "promise.get", data: { id } })));
    return found.every((record) => record === undefined);
  }

  async #doChores(now: number): Promise<void> {
    await this.#enlist();
    await this.#catchUp();
    const stale = this.#looks.overdue(LOOKS);
    await this.#looks.lookAt(stale).catch(() => {}); // The next alarm looks again.
    this.#jobs.forgetPeriods(now);
    const isLong = this.#log.prune(now);
    const isBusy = this.#takeover.isPending || stale.length === LOOKS || isLong;
    this.#jobs.set("chores", String(Date.now() + (isBusy ? SOON : DAY)));
  }

  #reserve(job: StartedJob, most: Most) {
    return this.#jobs.transaction(() => this.#jobs.reserve(job, most, Date.now()));
  }

  /** Begins the record of a caller; waits for some of what is to be taken over. */
  async #begin(key: string): Promise<void> {
    if (this.#takeover.key === undefined) {
      this.#begun ??= this.#takeover.begin(key).finally(() => {
        this.#begun = undefined;
      });
      await this.#begun;
      this.#jobs.set("chores", String(Date.now() + (this.#takeover.isPending ? SOON : DAY)));
      await this.#arm();
    }
    if (!this.#isListed) void this.#enlist();
    if (this.#takeover.isPending) await this.#catchUp();
  }

  /** Takes some steps of the takeover; what fails is left to the next call or alarm. */
  async #catchUp(): Promise<void> {
    const steps = async () => {
      for (let n = 0; n < STEPS && this.#takeover.isPending; n++) await this.#takeover.step();
    };
    this.#catchingUp ??= steps()
      .catch(() => {})
      .finally(() => {
        this.#catchingUp = undefined;
      });
    await this.#catchingUp;
  }

  #nameOf(id: string): string {
    return new Names([], this.#config.RESONATE_NAMESPACE, this.#takeover.key ?? "").nameIn(id);
  }
}

/** Whether the Resonate server is on this machine or its network, where a held connection costs nothing. */
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
