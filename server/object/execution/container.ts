import type { RunnerNamespace } from "./runner-pool.ts";

/** How long a container may take to start before it is called again. */
const START_TIMEOUT_MS = 20_000;

/** How long a wake-up is reported to the cron trigger, which asks every minute. */
const WAKE_UP_REPORT_MS = 90_000;

/** The name of the first container. The cron trigger of the containers' Worker starts the others within a minute. */
const FIRST_CONTAINER = "worker-1";

/** Starts the worker in a container of the account when a task finds no worker: a request wakes a sleeping container. */
export class ContainerWorker {
  readonly #namespace: RunnerNamespace;
  readonly #durable: () => Promise<void>;
  #lastWakeUpAt = 0;

  constructor(namespace: RunnerNamespace, durable: () => Promise<void>) {
    this.#namespace = namespace;
    this.#durable = durable;
  }

  /** Whether a job has just woken the first container, and the others are to start. */
  get isStarting(): boolean {
    return Date.now() - this.#lastWakeUpAt < WAKE_UP_REPORT_MS;
  }

  wake(): void {
    const now = Date.now();
    if (now - this.#lastWakeUpAt < START_TIMEOUT_MS) return;
    this.#lastWakeUpAt = now;
    void this.#call();
  }

  async #call(): Promise<void> {
    try {
      await this.#durable();
      const container = this.#namespace.get(this.#namespace.idFromName(FIRST_CONTAINER));
      await container.fetch("http://worker/health", { method: "GET" });
    } catch (error) {
      // The cron trigger tries again.
      console.warn(JSON.stringify({ level: "warn", msg: "container not woken", reason: String(error) }));
    }
  }
}
