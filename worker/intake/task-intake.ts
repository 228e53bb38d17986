import PQueue from "p-queue";
import type { Job } from "../../core/author/index.ts";
import { type LineLog, type Observe, ownerOf, reasonOf } from "../../core/jobs/index.ts";
import {
  type AcquiredTask,
  type LeaseRef as Dispatch,
  localId,
  ResonateRefused,
  splitGeneration,
  splitKey,
  within,
} from "../../core/resonate/index.ts";
import type { Executor } from "../execution/executor.ts";
import type { FindFunction, TaskFunction } from "../execution/functions.ts";
import type { Heartbeat, TaskLeases } from "../execution/task-leases.ts";
import { type TaskHandler, TaskQueue } from "./task-queue.ts";
import { UnhandledTasks } from "./unhandled-tasks.ts";

/** How many tasks are released at the same time when the worker stops, and how long that may take. */
const MAX_CONCURRENT_RELEASES = 32;
const RELEASE_TIMEOUT_MS = 3_000;

/** The pause before a task is claimed again when the server could not be reached. */
const CLAIM_AGAIN_AFTER_MS = 1_000;

/** How many tasks are claimed ahead of their slots if each needs heartbeats of its own. */
const MAX_QUEUED_WITH_OWN_HEARTBEATS = 100;

interface ClaimedTask extends AcquiredTask {
  taskFunction: TaskFunction;
  kind: string;
  /** Its name in logs. */
  name: string;
  /** The caller that it belongs to; empty without authentication. */
  owner: string;
  /** By `performance.now()`. */
  claimedAt: number;
  isRunning: boolean;
}

interface IntakeParts {
  leases: TaskLeases;
  heartbeat: Heartbeat;
  find: FindFunction;
  executor: Executor;
  observe: Observe;
  jobs: readonly Job[];
  namespace: string;
  leaseTimeMs: number;
  log: LineLog;
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
export class TaskIntake implements TaskHandler<ClaimedTask> {
  readonly #parts: IntakeParts;
  readonly #options: IntakeOptions;
  /** A queue for each kind of job, so that a kind that waits, for example for a slow service, does not delay the others. */
  readonly #queues = new Map<string, TaskQueue<ClaimedTask>>();
  readonly #claimed = new Set<ClaimedTask>();
  /** Undefined until the first of them. */
  #unhandled: UnhandledTasks | undefined;
  readonly #releases = new PQueue({ concurrency: MAX_CONCURRENT_RELEASES });
  #running = 0;
  #isStopping = false;

  constructor(parts: IntakeParts, options: IntakeOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  dispatch(dispatch: Dispatch): void {
    if (!this.#unhandled?.postpone(dispatch)) this.#enqueue(dispatch);
  }

  /** Releases waiting tasks at once, and running ones that have not ended after `drainTimeoutMs`. */
  async stop(drainTimeoutMs: number): Promise<void> {
    this.#isStopping = true;
    this.#unhandled?.close();
    const idle = Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    const releases = this.#release([...this.#claimed].filter(({ isRunning }) => !isRunning));
    await within(Promise.all([idle, releases]), drainTimeoutMs);
    await within(this.#release([...this.#claimed]), RELEASE_TIMEOUT_MS);
    this.#parts.heartbeat.stopAll();
  }

  #enqueue(dispatch: Dispatch, isOld = false): void {
    const { key, name } = splitKey(localId(dispatch.id, this.#parts.namespace));
    const { base } = splitGeneration(name);
    const kind = this.#parts.jobs.find((job) => job.owns(base))?.kind ?? "unknown";
    const queue = this.#queues.get(kind) ?? this.#createQueue(kind);
    queue.add(dispatch, key, isOld);
  }

  #createQueue(kind: string): TaskQueue<ClaimedTask> {
    const queue = new TaskQueue<ClaimedTask>(kind, this.#options.maxTasks, this, this.#parts.observe);
    this.#queues.set(kind, queue);
    return queue;
  }

  get maxClaimed(): number {
    const { maxTasks, maxQueued } = this.#options;
    const { isPerJob } = this.#parts.heartbeat;
    return maxTasks + (isPerJob ? Math.min(maxQueued, MAX_QUEUED_WITH_OWN_HEARTBEATS) : maxQueued);
  }

  /** Takes the lease on a dispatched task; undefined when another worker has it, the job has ended, or no function fits. */
  async claim(dispatch: Dispatch, kind: string): Promise<ClaimedTask | undefined> {
    const { leases, find, namespace, log } = this.#parts;
    const name = localId(dispatch.id, namespace);
    try {
      const task = await leases.claim(dispatch, true);
      if (!task) return undefined;
      const taskFunction = find(task.promise);
      if (!taskFunction) {
        await this.#releaseUnhandled(task, kind, name);
        return undefined;
      }
      const owner = ownerOf(name, task.promise);
      const claimed = { ...task, taskFunction, kind, name, owner, claimedAt: performance.now(), isRunning: false };
      this.#claimed.add(claimed);
      if (this.#isStopping) await this.#release([claimed]);
      return claimed;
    } catch (error) {
      const isRefused = error instanceof ResonateRefused;
      log[isRefused ? "warn" : "debug"]({ job: name, reason: reasonOf(error) }, "task not taken");
      // The server would dispatch it again, but at growing intervals, as it assumes that a connected worker got the dispatch.
      if (!isRefused) setTimeout(() => this.#enqueue(dispatch, true), CLAIM_AGAIN_AFTER_MS).unref();
      return undefined;
    }
  }

  async #releaseUnhandled({ task, promise }: AcquiredTask, kind: string, name: string): Promise<void> {
    const { leases, observe, log } = this.#parts;
    this.#unhandled ??= new UnhandledTasks((dispatch) => this.#enqueue(dispatch));
    const isFirst = this.#unhandled.record(task.id);
    log[isFirst ? "warn" : "debug"]({ job: name }, "no function for this job here");
    await observe({ type: "unhandled", kind, name, promise, isFirst });
    await leases.release(task);
  }

  async run(claimed: ClaimedTask): Promise<void> {
    const { executor, heartbeat, observe, leaseTimeMs } = this.#parts;
    const { taskFunction, kind } = claimed;
    claimed.isRunning = true;
    this.#running += 1;
    void observe({ type: "executing", kind, change: 1 });
    try {
      const hasWaited = performance.now() - claimed.claimedAt >= leaseTimeMs / 3;
      if (!hasWaited || (await this.#isStillOurs(claimed))) await executor.execute(claimed, taskFunction);
    } finally {
      heartbeat.stop(claimed.task);
      this.#claimed.delete(claimed);
      this.#running -= 1;
      void observe({ type: "executing", kind, change: -1 });
    }
  }

  /** Whether this worker still has the task after it waited for a slot: the job may have ended, or the lease lapsed. */
  async #isStillOurs({ task, name }: ClaimedTask): Promise<boolean> {
    const { heartbeat, log } = this.#parts;
    try {
      if (await heartbeat.isAcquired(task)) return true;
    } catch (error) {
      log.debug({ job: name, reason: reasonOf(error) }, "task not looked up");
    }
    log.info({ job: name, reason: "it has waited too long, or has been settled" }, "job left");
    return false;
  }

  /** Ends leases, so that the server dispatches the tasks to other workers at once. */
  async #release(all: readonly ClaimedTask[]): Promise<void> {
    await this.#releases.addAll(all.map((claimed) => () => this.#releaseOne(claimed)));
  }

  async #releaseOne(claimed: ClaimedTask): Promise<void> {
    const { leases, observe, log } = this.#parts;
    const { task, name, kind } = claimed;
    if (!this.#claimed.delete(claimed)) return;
    try {
      if (!(await leases.release(task))) return;
      log.info({ job: name }, "job released");
      await observe({ type: "released", kind });
    } catch (error) {
      log.warn({ job: name, reason: reasonOf(error) }, "job not released");
    }
  }
}
