import type { RunnerNamespace } from "./runner-pool.ts";

/** How long a container may take to start before it is called again, in milliseconds. */
const START_TIME = 20_000;

/** How long the cron trigger, which asks every minute, is told of a wake-up, in milliseconds. */
const RECENT = 90_000;

/** The name of the first container. The cron trigger of the containers' Worker starts the others within a minute. */
const NAME = "worker-1";

/** Starts the worker in a container of the account when a task finds no worker: a request wakes a sleeping container. */
export class ContainerWorker {
  readonly #namespace: RunnerNamespace;
  readonly #durable: () => Promise<void>;
  #calledAt = 0;

  constructor(namespace: RunnerNamespace, durable: () => Promise<void>) {
    this.#namespace = namespace;
    this.#durable = durable;
  }

  /** Whether a job has just woken the first container, and the others are to start. */
  get isStarting(): boolean {
    return Date.now() - this.#calledAt < RECENT;
  }

  wake(): void {
    const now = Date.now();
    if (now - this.#calledAt < START_TIME) return;
    this.#calledAt = now;
    void this.#call();
  }

  async #call(): Promise<void> {
    try {
      await this.#durable();
      const container = this.#namespace.get(this.#namespace.idFromName(NAME));
      await container.fetch("http://worker/health", { method: "GET" });
    } catch (error) {
      // The cron trigger tries again.
      console.warn(JSON.stringify({ level: "warn", msg: "container not woken", reason: String(error) }));
    }
  }
}
