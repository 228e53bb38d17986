import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import PQueue from "p-queue";
import type { Implementation } from "../core/author/implement.ts";
import { ownerOf } from "../core/jobs/durable-promise.ts";
import { RemoteStore } from "../core/jobs/remote-store.ts";
import { ResonateClient } from "../core/store/client.ts";
import { endpointOf } from "../core/store/endpoint.ts";
import { ResonateRefused } from "../core/store/failures.ts";
import { localId, splitGeneration, splitKey } from "../core/store/ids.ts";
import type { Acquired, LeaseRef as Dispatch, TaskRecord } from "../core/store/protocol.ts";
import { checkSupport } from "../core/store/support.ts";
import type { FoundCode } from "./execution/code.ts";
import { Executor } from "./execution/executor.ts";
import { Heartbeat, now } from "./execution/heartbeat.ts";
import { reasonOf } from "./execution/instruments.ts";
import { batched } from "./intake/batches.ts";
import { createExchange } from "./intake/exchange.ts";
import { Pauses } from "./intake/pauses.ts";
import { PromiseWatcher } from "./intake/promise-watch.ts";
import { TaskQueue } from "./intake/task-queue.ts";
import { UnhandledTasks } from "./intake/unhandled-tasks.ts";
import type { Logger } from "./process/logger.ts";
import { handedBack, instruments, resonateRequests, running, strange, waiting } from "./process/metrics.ts";
import type { WorkerConfig } from "./process/worker-config.ts";

/** How many tasks are handed back at the same time when the worker stops. */
const HAND_BACK = 32;

/** The longest that handing back what has run may take, in milliseconds. */
const HAND_BACK_TIME = 3_000;

/** After how long a task is claimed again when it could not be asked for, in milliseconds. */
const CLAIM_AGAIN = 1_000;

/** How many tasks are claimed ahead where each costs heartbeats of its own. */
const AHEAD_PER_JOB = 100;

/** A task that this worker has the lease on. */
interface Held extends Acquired {
  runnable: FoundCode;
  /** The kind of job. */
  job: string;
  /** When it was claimed, by `performance.now()`. */
  since: number;
}

/** Takes jobs from the Resonate server and runs them, a bounded number of each kind at once, until `stop`. */
export class Worker {
  readonly #config: WorkerConfig;
  readonly #log: Logger;
  readonly #pid = randomUUID();
  readonly #group: string;
  readonly #lease: number;
  readonly #client: ResonateClient;
  readonly #executor: Executor;
  readonly #implementations: readonly Implementation[];
  readonly #news: PromiseWatcher;
  readonly #heartbeat: Heartbeat;
  readonly #pauses: Pauses;
  /** A lane for each kind of job, so that one kind that waits, for a slow archive or for jobs of another, holds up no other. */
  readonly #lanes = new Map<Implementation | undefined, TaskQueue<Held>>();
  /** Tasks this worker has the lease on, those that wait for a place as well. */
  readonly #held = new Set<Held>();
  readonly #strangers = new UnhandledTasks((dispatch) => this.#laneOf(dispatch.id).add(dispatch));
  readonly #isRunning = new WeakSet<Held>();
  #running = 0;
  readonly #handBack = new PQueue({ concurrency: HAND_BACK });
  /** Ends the connection over which jobs are dispatched. */
  readonly #closed = new AbortController();
  #connected = false;
  #wasConnected = false;
  /** When it was connected last, or else began, by `performance.now()`. */
  #connectedAt = performance.now();
  #stopping = false;

  /**
   * @throws {Error} naming the variables that an implementation needs and the environment lacks; or when none of them is of
   *   the group whose jobs this worker takes
   */
  constructor(config: WorkerConfig, implementations: readonly Implementation[], env: NodeJS.ProcessEnv, log: Logger) {
    const { RESONATE_URL: url, RESONATE_TOKEN: token } = config;
    const pid = this.#pid;
    this.#config = config;
    this.#log = log;
    this.#lease = Math.ceil(config.LEASE_SECONDS * 1000);
    this.#implementations = implementations;
    this.#group = config.WORKER_GROUP ?? config.RESONATE_GROUP;
    const others = implementations.filter(({ job }) => (job.group ?? config.RESONATE_GROUP) !== this.#group);
    if (others.length > 0) {
      const kinds = others.map(({ job }) => job.kind);
      if (others.length === implementations.length) {
        throw new Error(
          `WORKER_GROUP: this worker takes the jobs of the group ${this.#group}, and none of its kinds is of that group: ${kinds.join(", ")}`,
        );
      }
      log.info({ group: this.#group, kinds }, "these kinds are run by workers of other groups");
    }
    const client = new ResonateClient({
      url,
      token,
      encryptionKeys: config.ENCRYPTION_KEYS,
      exchange: batched(createExchange(env)),
      timeout: Math.min(10_000, this.#lease),
      onRequest: (kind, status) => resonateRequests.inc({ kind, status: status ?? "none" }),
    });
    this.#client = client;
    this.#news = new PromiseWatcher(client);
    this.#heartbeat = new Heartbeat(client, pid, this.#lease);
    this.#pauses = new Pauses(client, config.RESONATE_NAMESPACE, this.#lease);
    const jobs = implementations.map(({ job }) => job);
    this.#executor = new Executor({
      implementations,
      env,
      client,
      store: new RemoteStore(endpointOf(config), jobs, {}, client),
      news: this.#news,
      heartbeat: this.#heartbeat,
      lease: this.#lease,
      namespace: config.RESONATE_NAMESPACE,
      nameOf: (id) => this.#nameOf(id),
      log,
      instruments,
    });
  }

  /** Whether jobs can arrive at the moment. */
  get connected(): boolean {
    return this.#connected;
  }

  /** How many jobs are executing. */
  get running(): number {
    return this.#running;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** Whether it has been connected at all. */
  get wasConnected(): boolean {
    return this.#wasConnected;
  }

  /** For how long no job can have arrived, in milliseconds; 0 while it is connected. */
  get disconnectedFor(): number {
    return this.#connected ? 0 : performance.now() - this.#connectedAt;
  }

  /**
   * Begins to take jobs; resolves once the first can arrive.
   *
   * @throws {Error} when the server refuses the token, or is of a release that is not supported
   */
  async start(): Promise<void> {
    const { RESONATE_URL, RESONATE_NAMESPACE } = this.#config;
    const unsupported = await checkSupport(this.#client, RESONATE_NAMESPACE);
    if (unsupported) throw new Error(`RESONATE_URL ${RESONATE_URL}: ${unsupported.words}`);
    return this.#listen();
  }

  #listen(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.#client.listen({
      group: this.#group,
      id: this.#pid,
      signal: this.#closed.signal,
      onMessage: (message) => {
        if (message.kind === "unblock") this.#news.heard(message.promise);
        else if (!this.#strangers.keeps(message.task)) this.#laneOf(message.task.id).add(message.task);
      },
      onConnect: (address) => {
        this.#connected = true;
        this.#wasConnected = true;
        this.#news.connected(address);
        resolve();
      },
      onDisconnect: (reason) => this.#disconnected(reason),
    });
    return promise;
  }

  /**
   * Takes no new jobs and hands back those that wait for a place at once; lets running ones finish for `DRAIN_SECONDS`, then
   * hands back the rest, for another worker.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#closed.abort();
    this.#strangers.close();
    const idle = Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
    const waiting = this.#release([...this.#held].filter((held) => !this.#isRunning.has(held)));
    await Promise.race([Promise.all([idle, waiting]), delay(this.#config.DRAIN_SECONDS * 1000)]);
    await Promise.race([this.#release([...this.#held]), delay(HAND_BACK_TIME)]);
    this.#heartbeat.stopAll();
  }

  #disconnected(reason: Error | undefined): void {
    if (this.#connected) this.#connectedAt = performance.now();
    this.#connected = false;
    this.#news.disconnected();
    if (this.#stopping) return;
    if (reason) this.#log.warn({ reason: reasonOf(reason) }, "connection to Resonate failed");
    else this.#log.info("connection to Resonate ended");
  }

  #laneOf(id: string): TaskQueue<Held> {
    const { base } = splitGeneration(splitKey(this.#nameOf(id)).name);
    const kind = this.#implementations.find(({ job }) => job.owns(base));
    const known = this.#lanes.get(kind);
    if (known) return known;
    const { MAX_TASKS, MAX_QUEUED } = this.#config;
    const job = kind?.job.kind ?? "unknown";
    const lane = new TaskQueue<Held>(MAX_TASKS, {
      claim: (dispatch) => this.#claim(dispatch, job),
      run: (held) => this.#run(held),
      most: () => MAX_TASKS + (this.#heartbeat.isPerJob ? Math.min(MAX_QUEUED, AHEAD_PER_JOB) : MAX_QUEUED),
      ownerOf: ({ promise }) => ownerOf(this.#nameOf(promise.id), promise),
      keyOf: (id) => splitKey(this.#nameOf(id)).key,
      onWaiting: (more) => waiting.inc({ job }, more),
    });
    this.#lanes.set(kind, lane);
    return lane;
  }

  /** Takes the lease on a dispatched task; nothing when another worker has it or the job has ended meanwhile. */
  async #claim({ id, version }: Dispatch, job: string): Promise<Held | undefined> {
    try {
      const records = this.#executor.recordsWanted({ id, version });
      const asked = now();
      const data = { id, version, pid: this.#pid, ttl: this.#lease, records };
      const answer = await this.#client.send("task.acquire", data, { origin: id, patience: this.#lease });
      if (answer.status !== 200) return undefined;
      const { task, promise } = answer.data;
      const runnable = this.#executor.codeFor(promise);
      if (!runnable) {
        await this.#letGo(task, job);
        return undefined;
      }
      const held = { ...answer.data, runnable, job, since: performance.now() };
      this.#held.add(held);
      this.#heartbeat.start(task, asked);
      if (this.#stopping) await this.#release([held]);
      return held;
    } catch (error) {
      const isRefused = error instanceof ResonateRefused;
      this.#log[isRefused ? "warn" : "debug"]({ job: this.#nameOf(id), reason: reasonOf(error) }, "task not taken");
      // The server dispatches it again, but ever less often: it takes it that a worker which is connected has heard it.
      if (!isRefused) setTimeout(() => this.#laneOf(id).add({ id, version }), CLAIM_AGAIN).unref();
      return undefined;
    }
  }

  /** Ends the lease on a task that there is no code for, so that the server offers it to another worker. */
  async #letGo({ id, version }: TaskRecord, job: string): Promise<void> {
    const isNews = this.#strangers.meet(id);
    strange.inc({ job });
    this.#log[isNews ? "warn" : "debug"]({ job: this.#nameOf(id) }, "no function for this job here");
    await this.#client.send("task.release", { id, version }, { origin: id, patience: this.#lease });
  }

  async #run(held: Held): Promise<void> {
    const { task, runnable, job } = held;
    this.#isRunning.add(held);
    this.#running += 1;
    running.inc({ job });
    if ((await this.#isOurs(held)) && !(await this.#isPaused(held))) await this.#executor.execute(held, runnable, job);
    this.#heartbeat.stop(task);
    this.#held.delete(held);
    this.#running -= 1;
    running.dec({ job });
  }

  /** Whether jobs of its kind are paused: it sleeps until they go on. */
  async #isPaused({ task, runnable }: Held): Promise<boolean> {
    if (typeof runnable === "string") return false;
    const job = this.#nameOf(task.id);
    try {
      const isPaused = await this.#pauses.holds(task, runnable.implementation.job.kind);
      if (isPaused) this.#log.info({ job }, "job paused");
      return isPaused;
    } catch (error) {
      // Its lease lapses, and the server dispatches it again.
      this.#log.info({ job, reason: reasonOf(error) }, "job left");
      return true;
    }
  }

  /** Whether a task that has waited is still this worker's: its job may have been cancelled, or its lease may have lapsed. */
  async #isOurs({ task, since }: Held): Promise<boolean> {
    if (performance.now() - since < this.#lease / 3) return true;
    const job = this.#nameOf(task.id);
    try {
      if (await this.#heartbeat.ask(task)) return true;
    } catch (error) {
      this.#log.debug({ job, reason: reasonOf(error) }, "task not asked for");
    }
    this.#log.info({ job, reason: "it has waited too long, or has been settled" }, "job left");
    return false;
  }

  /** Ends leases, so that the server dispatches the tasks to other workers at once. */
  async #release(all: readonly Held[]): Promise<void> {
    await this.#handBack.addAll(all.map((held) => () => this.#releaseOne(held)));
  }

  async #releaseOne(held: Held): Promise<void> {
    const { task, job: kind } = held;
    if (!this.#held.delete(held)) return;
    this.#heartbeat.stop(task);
    const { id, version } = task;
    const job = this.#nameOf(id);
    try {
      const answer = await this.#client.send("task.release", { id, version }, { origin: id, patience: this.#lease });
      if (answer.status !== 200) return;
      this.#log.info({ job }, "job handed back");
      handedBack.inc({ job: kind });
    } catch (error) {
      this.#log.warn({ job, reason: reasonOf(error) }, "job not handed back");
    }
  }

  /** The job's name: its promise id without the deployment's namespace, so with the key of the caller it belongs to. */
  #nameOf(id: string): string {
    const namespace = this.#config.RESONATE_NAMESPACE;
    return localId(id, namespace);
  }
}
