import type { ResonateClient } from "../../core/store/client.ts";
import type { LeaseRef } from "../../core/store/protocol.ts";

/** How many tasks are named in one request at most: a server takes 2 MB. */
const MOST = 1_000;

/** A moment by both clocks: one of them nobody sets, the other goes on while the machine sleeps. */
interface Moment {
  monotonic: number;
  wall: number;
}

/** A task, and since when at the least it is certain to be this worker's for as long as a lease. */
interface Kept extends LeaseRef {
  since: Moment;
}

/** Keeps this worker's leases alive: one request for a thousand of them, three times in a lease. */
export class Heartbeat {
  readonly #client: ResonateClient;
  readonly #pid: string;
  readonly #lease: number;
  readonly #interval: number;
  readonly #tasks = new Map<string, Kept>();
  #timer: NodeJS.Timeout | undefined;
  /** A newer server refuses a request about the tasks of more than one job. */
  #isPerJob = false;

  /** `lease` is in milliseconds. */
  constructor(client: ResonateClient, pid: string, lease: number) {
    this.#client = client;
    this.#pid = pid;
    this.#lease = lease;
    this.#interval = Math.floor(lease / 3); // a time-out must be a whole number
  }

  /** Whether each job needs a request of its own. */
  get isPerJob(): boolean {
    return this.#isPerJob;
  }

  /** `since`: when it was asked for, unless that was just now. */
  start({ id, version }: LeaseRef, since = now()): void {
    if (this.#tasks.get(id)?.version !== version) this.#tasks.set(id, { id, version, since });
    this.#timer ??= setInterval(() => void this.#beat(), this.#interval);
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
   * Whether a task is this worker's. The server is asked only where that is not certain: where the last sign of life that is
   * known to have renewed the lease is long ago, as when this process was stopped, or its machine asleep.
   *
   * @throws {ResonateUnavailable}
   */
  async isOurs({ id, version }: LeaseRef): Promise<boolean> {
    const kept = this.#tasks.get(id);
    if (kept?.version !== version) return false;
    // Two signs of life that were missed leave as much of the lease as one takes.
    if (ago(kept.since) < 2 * this.#interval) return true;
    const sent = now();
    const isRenewed = (await this.#send([kept])) === 200;
    const isOurs = await this.ask(kept);
    // It was this worker's when that sign of life came, too: it would be of another version now.
    if (isOurs && isRenewed) kept.since = sent;
    return isOurs;
  }

  /** What the server says to that. @throws {ResonateUnavailable} */
  async ask({ id, version }: LeaseRef): Promise<boolean> {
    const answer = await this.#client.send("task.get", { id }, { origin: id, patience: this.#lease });
    const { state, version: latest } = answer.status === 200 ? answer.data.task : {};
    return state === "acquired" && latest === version;
  }

  async #beat(): Promise<void> {
    const tasks = [...this.#tasks.values()];
    for (let from = 0; from < tasks.length && !this.#isPerJob; from += MOST) {
      const some = tasks.slice(from, from + MOST);
      this.#isPerJob = (await this.#renew(some)) === 400 && some.length > 1;
    }
    if (this.#isPerJob) await Promise.all(tasks.map((task) => this.#renew([task])));
  }

  /**
   * A server answers the same whatever it has renewed. What was certain to be this worker's until the answer was here has
   * been; of anything else it is not known.
   */
  async #renew(tasks: Kept[]): Promise<number | undefined> {
    const sent = now();
    const status = await this.#send(tasks);
    if (status !== 200) return status;
    for (const task of tasks) if (ago(task.since) < this.#lease) task.since = sent;
    return status;
  }

  /** The status of the answer; undefined without one: the next beat comes before the lease has lapsed. */
  async #send(kept: Kept[]): Promise<number | undefined> {
    const tasks = kept.map(({ id, version }) => ({ id, version }));
    const origin = tasks[0]?.id;
    const options = { ...(origin !== undefined && { origin }), signal: AbortSignal.timeout(this.#interval) };
    try {
      return (await this.#client.send("task.heartbeat", { pid: this.#pid, tasks }, options)).status;
    } catch (error) {
      return (error as { status?: number }).status;
    }
  }
}

/** The present moment, for {@link Heartbeat.start}. */
export const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

/** How long ago a moment is, in milliseconds, at the most. */
const ago = ({ monotonic, wall }: Moment): number => Math.max(performance.now() - monotonic, Date.now() - wall);
