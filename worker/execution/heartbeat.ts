import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { LeaseRef } from "../../core/resonate/connection/protocol.ts";

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
    const answer = await this.#client.send("task.get", { id }, { origin: id, patience: this.#leaseTimeMs });
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

export const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

/** How long ago a moment is, in milliseconds, by the clock that shows the longer time. */
const ago = ({ monotonic, wall }: Moment): number => Math.max(performance.now() - monotonic, Date.now() - wall);
