import PQueue from "p-queue";
import { kindIn } from "../../core/jobs/caller-record.ts";
import { ownerOf } from "../../core/jobs/durable-promise.ts";
import { ResonateRefused } from "../../core/resonate/connection/failures.ts";
import type {
  Acquired,
  LeaseRef as Dispatch,
  PromiseRecord,
  TaskRecord,
} from "../../core/resonate/connection/protocol.ts";
import { localId, splitKey } from "../../core/resonate/ids.ts";
import { within } from "../../core/resonate/pacing/backoff.ts";
import { released, running, unhandled, waiting } from "../../features/metrics/metrics.ts";
import type { Composition } from "../composition.ts";
import { codeFor, type FoundCode } from "../execution/code.ts";
import { reasonOf } from "../execution/instruments.ts";
import { TaskQueue } from "./task-queue.ts";
import { UnhandledTasks } from "./unhandled-tasks.ts";

/** How many tasks are released at the same time when the worker stops. */
const RELEASES = 32;

/** How long the release of running tasks may take, in milliseconds. */
const RELEASE_TIME = 3_000;

/** The pause before a task is claimed again when the server could not be reached, in milliseconds. */
const CLAIM_AGAIN_AFTER = 1_000;

/** How many tasks are claimed ahead of their slots if each needs heartbeats of its own. */
const AHEAD_PER_JOB = 100;

interface LeasedTask extends Acquired {
  code: FoundCode;
  kind: string;
  /** The caller that it belongs to; empty where callers are not told apart. */
  owner: string;
  /** By `performance.now()`. */
  claimedAt: number;
  isRunning: boolean;
}

interface IntakeOptions {
  /** How many jobs of each kind execute at once, and how many more are claimed and wait. */
  maxTasks: number;
  maxQueued: number;
}

/**
 * A task's way through a worker: it is dispatched, queued by kind, claimed (from then on the lease is kept alive), given a slot
 * and executed. A task that cannot run here is released, and so is every task that is left when the worker stops.
 */
export class TaskIntake {
  readonly #parts: Composition;
  readonly #options: IntakeOptions;
  /** A queue for each kind of job, so that a kind that waits, for example for a slow service, does not delay the others. */
  readonly #queues = new Map<string, TaskQueue<LeasedTask>>();
  readonly #leased = new Set<LeasedTask>();
  readonly #unhandled = new UnhandledTasks((dispatch) => this.#enqueue(dispatch));
  readonly #releases = new PQueue({ concurrency: RELEASES });
  #running = 0;
  #isStopping = false;

  constructor(parts: Composition, options: IntakeOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  dispatch(dispatch: Dispatch): void {
    if (!this.#unhandled.holdBack(dispatch)) this.#enqueue(dispatch);
  }

  /** Releases waiting tasks at once, and running ones that have not ended after `drain` milliseconds. */
  async stop(drain: number): Promise<void> {
    this.#isStopping = true;
    this.#unhandled.close();
    const idle = Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    const waiting = this.#release([...this.#leased].filter(({ isRunning }) => !isRunning));
    await within(Promise.all([idle, waiting]), drain);
    await within(this.#release([...this.#leased]), RELEASE_TIME);
    this.#parts.heartbeat.stopAll();
  }

  #enqueue(dispatch: Dispatch, isOld = false): void {
    const { kindOf, namespace } = this.#parts;
    const kind = kindOf(dispatch.id);
    const queue = this.#queues.get(kind) ?? this.#createQueue(kind);
    this.#queues.set(kind, queue);
    queue.add(dispatch, splitKey(localId(dispatch.id, namespace)).key, isOld);
  }

  #createQueue(kind: string): TaskQueue<LeasedTask> {
    const { heartbeat, reports } = this.#parts;
    const { maxTasks, maxQueued } = this.#options;
    return new TaskQueue<LeasedTask>(maxTasks, {
      claim: (dispatch) => this.#claim(dispatch, kind),
      run: (task) => this.#run(task),
      most: () => maxTasks + (heartbeat.isPerJob ? Math.min(maxQueued, AHEAD_PER_JOB) : maxQueued),
      onWaiting: (more) => {
        waiting.inc({ job: kind }, more);
        if (reports) reports.figures.waiting += more;
      },
    });
  }

  /** Takes the lease on a dispatched task; undefined when another worker has it, the job has ended, or no function fits. */
  async #claim(dispatch: Dispatch, kind: string): Promise<LeasedTask | undefined> {
    const { acquire, leaseTime, implementations, heartbeat, namespace, log } = this.#parts;
    const job = localId(dispatch.id, namespace);
    try {
      const acquired = await acquire(dispatch, leaseTime);
      if (!acquired) return undefined;
      const { task, promise } = acquired;
      const code = codeFor(promise, implementations);
      if (!code) {
        heartbeat.stop(task);
        await this.#releaseUnhandled(task, promise, kind);
        return undefined;
      }
      const owner = ownerOf(job, promise);
      const leased = { ...acquired, code, kind, owner, claimedAt: performance.now(), isRunning: false };
      this.#leased.add(leased);
      if (this.#isStopping) await this.#release([leased]);
      return leased;
    } catch (error) {
      const isRefused = error instanceof ResonateRefused;
      log[isRefused ? "warn" : "debug"]({ job, reason: reasonOf(error) }, "task not taken");
      // The server would dispatch it again, but at growing intervals, as it assumes that a connected worker got the dispatch.
      if (!isRefused) setTimeout(() => this.#enqueue(dispatch, true), CLAIM_AGAIN_AFTER).unref();
      return undefined;
    }
  }

  async #releaseUnhandled({ id, version }: TaskRecord, promise: PromiseRecord, kind: string): Promise<void> {
    const { client, leaseTime, namespace, log, reports } = this.#parts;
    const isFirst = this.#unhandled.record(id);
    unhandled.inc({ job: kind });
    const job = localId(id, namespace);
    log[isFirst ? "warn" : "debug"]({ job }, "no function for this job here");
    if (isFirst)
      reports?.figures.waits({ job, kind: kindIn(promise), state: "worker", says: "a worker lacks its function" });
    await client.send("task.release", { id, version }, { origin: id, patience: leaseTime });
  }

  async #run(leased: LeasedTask): Promise<void> {
    const { executor, heartbeat } = this.#parts;
    const { code, kind: job } = leased;
    leased.isRunning = true;
    this.#running += 1;
    running.inc({ job });
    try {
      if (await this.#isStillOurs(leased)) await executor.execute(leased, code, job);
    } finally {
      heartbeat.stop(leased.task);
      this.#leased.delete(leased);
      this.#running -= 1;
      running.dec({ job });
    }
  }

  /** Whether this worker still has the task after it waited for a slot: the job may have ended, or the lease lapsed. */
  async #isStillOurs({ task, claimedAt }: LeasedTask): Promise<boolean> {
    const { heartbeat, leaseTime, namespace, log } = this.#parts;
    if (performance.now() - claimedAt < leaseTime / 3) return true;
    const job = localId(task.id, namespace);
    try {
      if (await heartbeat.isAcquired(task)) return true;
    } catch (error) {
      log.debug({ job, reason: reasonOf(error) }, "task not looked up");
    }
    log.info({ job, reason: "it has waited too long, or has been settled" }, "job left");
    return false;
  }

  /** Ends leases, so that the server dispatches the tasks to other workers at once. */
  async #release(all: readonly LeasedTask[]): Promise<void> {
    await this.#releases.addAll(all.map((leased) => () => this.#releaseOne(leased)));
  }

  async #releaseOne(leased: LeasedTask): Promise<void> {
    const { client, leaseTime, heartbeat, namespace, log } = this.#parts;
    if (!this.#leased.delete(leased)) return;
    const { id, version } = leased.task;
    const job = localId(id, namespace);
    heartbeat.stop(leased.task);
    try {
      const answer = await client.send("task.release", { id, version }, { origin: id, patience: leaseTime });
      if (answer.status !== 200) return;
      log.info({ job }, "job released");
      released.inc({ job: leased.kind });
    } catch (error) {
      log.warn({ job, reason: reasonOf(error) }, "job not released");
    }
  }
}
