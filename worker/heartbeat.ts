import type { ResonateClient } from "../core/resonate/client.ts";
import type { LeaseRef } from "../core/resonate/protocol.ts";

/** How many tasks are named in one request at most: a server takes 2 MB. */
const MOST = 1_000;

/** Keeps this worker's leases alive: one request for a thousand of them, three times in a lease. */
export class Heartbeat {
  readonly #client: ResonateClient;
  readonly #pid: string;
  readonly #interval: number;
  readonly #tasks = new Map<string, LeaseRef>();
  #timer: NodeJS.Timeout | undefined;
  /** A newer server refuses a request about the tasks of more than one job. */
  #isPerJob = false;

  /** `lease` is in milliseconds. */
  constructor(client: ResonateClient, pid: string, lease: number) {
    this.#client = client;
    this.#pid = pid;
    this.#interval = Math.floor(lease / 3); // a time-out must be a whole number
  }

  /** Whether each job needs a request of its own. */
  get isPerJob(): boolean {
    return this.#isPerJob;
  }

  start({ id, version }: LeaseRef): void {
    this.#tasks.set(id, { id, version });
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

  async #beat(): Promise<void> {
    const tasks = [...this.#tasks.values()];
    for (let from = 0; from < tasks.length && !this.#isPerJob; from += MOST) {
      const some = tasks.slice(from, from + MOST);
      this.#isPerJob = (await this.#send(some)) === 400 && some.length > 1;
    }
    if (this.#isPerJob) await Promise.all(tasks.map((task) => this.#send([task])));
  }

  /** The status of the answer; undefined without one: the next beat comes before the lease has lapsed. */
  async #send(tasks: LeaseRef[]): Promise<number | undefined> {
    const origin = tasks[0]?.id;
    const options = { ...(origin !== undefined && { origin }), signal: AbortSignal.timeout(this.#interval) };
    try {
      return (await this.#client.send("task.heartbeat", { pid: this.#pid, tasks }, options)).status;
    } catch (error) {
      return (error as { status?: number }).status;
    }
  }
}
