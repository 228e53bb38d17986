/** The leases on tasks: taken, renewed, released, and the requests under them. */
import { type LeasedTask, LeaseLost, type Send, TaskLease, type Watch } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { reasonOf } from "../../core/jobs/index.ts";
import {
  type AcquiredTask,
  type LeaseRef,
  type OperationKind,
  type PromiseWatch,
  type ResonateClient,
  ResonateRefused,
  type ServerRules,
} from "../../core/resonate/index.ts";
import type { JournalCache } from "./journal-cache.ts";

/** The most tasks in one request: a server accepts 2 MB. */
const MAX_TASKS_OF_REQUEST = 1_000;

/** A moment by both clocks: the monotonic clock is never set, and the wall clock goes on while the machine sleeps. */
interface Moment {
  monotonic: number;
  wall: number;
}

/** A task with the latest moment from which its lease is certain to last its full time. */
interface BeatingTask extends LeaseRef {
  since: Moment;
}

/** Renews this worker's leases three times within a lease, up to a thousand in one request. */
export class Heartbeat {
  /** Whether the server refuses to renew the leases of several jobs in one request, as releases after 0.9.8 do. */
  isPerJob = false;
  readonly #client: ResonateClient;
  readonly #pid: string;
  readonly #leaseTimeMs: number;
  readonly #intervalMs: number;
  readonly #tasks = new Map<string, BeatingTask>();
  #timer: NodeJS.Timeout | undefined;

  constructor(client: ResonateClient, pid: string, leaseTimeMs: number) {
    this.#client = client;
    this.#pid = pid;
    this.#leaseTimeMs = leaseTimeMs;
    this.#intervalMs = Math.floor(leaseTimeMs / 3); // a timeout must be a whole number
  }

  /** `since`: when the task was requested. */
  start({ id, version }: LeaseRef, since: Moment): void {
    if (this.#tasks.get(id)?.version !== version) this.#tasks.set(id, { id, version, since });
    this.#timer ??= setInterval(() => void this.#beat(), this.#intervalMs);
  }

  stop({ id, version }: LeaseRef): void {
    if (this.#tasks.get(id)?.version === version) this.#tasks.delete(id);
    if (this.#tasks.size === 0) this.stopAll();
  }

  /** Lets every lease lapse. */
  stopAll(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#tasks.clear();
  }

  /**
   * Whether this worker still has the lease on a task. Asks the server only if the last confirmed renewal is long ago, for
   * example because the process was stopped or its machine slept.
   *
   * @throws {ResonateUnavailable}
   */
  async isOurs({ id, version }: LeaseRef): Promise<boolean> {
    const task = this.#tasks.get(id);
    if (task?.version !== version) return false;
    // Even after two missed renewals a third of the lease is left.
    if (ago(task.since) < 2 * this.#intervalMs) return true;
    const sent = now();
    const isRenewed = (await this.#send([task])) === 200;
    const isOurs = await this.isAcquired(task);
    // A lease that had lapsed before the renewal would have another version by now.
    if (isOurs && isRenewed) task.since = sent;
    return isOurs;
  }

  /** Whether the server still counts the lease of this version. @throws {ResonateUnavailable} */
  async isAcquired({ id, version }: LeaseRef): Promise<boolean> {
    const answer = await this.#client.send("task.get", { id }, { origin: id, retryForMs: this.#leaseTimeMs });
    const { state, version: latest } = answer.status === 200 ? answer.data.task : {};
    return state === "acquired" && latest === version;
  }

  async #beat(): Promise<void> {
    const tasks = [...this.#tasks.values()];
    for (let from = 0; from < tasks.length && !this.isPerJob; from += MAX_TASKS_OF_REQUEST) {
      const some = tasks.slice(from, from + MAX_TASKS_OF_REQUEST);
      this.isPerJob = (await this.#renew(some)) === 400 && some.length > 1;
    }
    if (this.isPerJob) await Promise.all(tasks.map((task) => this.#renew([task])));
  }

  /** The answer does not say which leases were renewed. Only those that cannot have lapsed before it count as renewed. */
  async #renew(tasks: BeatingTask[]): Promise<number | undefined> {
    const sent = now();
    const status = await this.#send(tasks);
    if (status !== 200) return status;
    for (const task of tasks) if (ago(task.since) < this.#leaseTimeMs) task.since = sent;
    return status;
  }

  /** The status of the answer; undefined without one, which is no failure, as the next beat comes before the lease lapses. */
  async #send(beating: BeatingTask[]): Promise<number | undefined> {
    const tasks = beating.map(({ id, version }) => ({ id, version }));
    const origin = tasks[0]?.id;
    const options = { ...(origin !== undefined && { origin }), signal: AbortSignal.timeout(this.#intervalMs) };
    try {
      return (await this.#client.send("task.heartbeat", { pid: this.#pid, tasks }, options)).status;
    } catch (error) {
      return (error as { status?: number }).status;
    }
  }
}

const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

/** How long ago a moment is, in milliseconds, by the clock that shows the longer time. */
const ago = ({ monotonic, wall }: Moment): number => Math.max(performance.now() - monotonic, Date.now() - wall);

interface TaskLeasesOptions {
  client: ResonateClient;
  /** The id of this worker. */
  pid: string;
  /** The length of a lease, which is also how long an unreachable server is retried. */
  leaseTimeMs: number;
  heartbeat: Heartbeat;
  journals: JournalCache;
  watcher: PromiseWatch;
  rules: ServerRules;
  /** In the order in which they act around what is recorded under a lease: the first is outermost. */
  features: readonly WorkerFeature[];
}

/** Takes leases on tasks, and makes requests under them. */
export class TaskLeases {
  readonly #options: TaskLeasesOptions;

  constructor(options: TaskLeasesOptions) {
    this.#options = options;
  }

  /**
   * Takes the lease on a task and keeps it alive; undefined if the task has another version, or its job has ended. With
   * `isPatient`, an unreachable server is retried.
   */
  async claim({ id, version }: LeaseRef, isPatient = false): Promise<AcquiredTask | undefined> {
    const { client, pid, leaseTimeMs, heartbeat, journals } = this.#options;
    const requestedAt = now();
    const records = journals.recordsWanted({ id, version });
    const data = { id, version, pid, ttl: leaseTimeMs, records };
    const retryForMs = isPatient ? leaseTimeMs : undefined;
    const answer = await client.send("task.acquire", data, { origin: id, retryForMs });
    if (answer.status !== 200) return undefined;
    heartbeat.start(answer.data.task, requestedAt);
    return answer.data;
  }

  /** Ends the lease on a task, so that the server dispatches it again; false if another worker has it. */
  async release({ id, version }: LeaseRef): Promise<boolean> {
    const { client, leaseTimeMs, heartbeat } = this.#options;
    heartbeat.stop({ id, version });
    const answer = await client.send("task.release", { id, version }, { origin: id, retryForMs: leaseTimeMs });
    return answer.status === 200;
  }

  /** The requests that may be made under the lease on a task. */
  on(task: LeasedTask): TaskLease {
    const { client, watcher, rules, leaseTimeMs, features } = this.#options;
    const origin = task.cleansUp ?? task.task.id;
    const send: Send = (kind, data) =>
      client.send(kind as OperationKind, data as never, { origin, retryForMs: leaseTimeMs }).catch((error) => {
        throw unanswered(kind, error);
      });
    // A promise may be awaited through any number of executions, and only the last one listens.
    const { id: job, createdAt } = task.promise;
    const listening = { by: `${job} ${createdAt}`, execution: task.task.version };
    const watch: Watch = (id, fresh, listener) => watcher.watch(id, fresh, listener, createdAt, listening);
    return new TaskLease(task, { send, watch, rules, features });
  }
}

/** The error of a request that was not answered. */
function unanswered(kind: string, error: unknown): LeaseLost {
  const isRefused = error instanceof ResonateRefused && error.status === 400;
  const message = isRefused ? `the Resonate server refuses the request ${kind}` : reasonOf(error);
  return new LeaseLost(message, { reason: isRefused ? "refused" : "unreachable", cause: error });
}
