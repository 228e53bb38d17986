import type { RunnerNamespace } from "./runners.ts";

/** How long a container may take to start before it is visited again, in milliseconds. */
const PATIENCE = 20_000;

/** The first of the containers, as the Worker that has them calls it. The others follow within a minute, by its cron trigger. */
const NAME = "worker-1";

/** Wakes the worker in a container of the account when jobs find nobody: a visit starts one that sleeps. */
export class ContainerWorker {
  readonly #namespace: RunnerNamespace;
  readonly #durable: () => Promise<void>;
  #visited = 0;

  constructor(namespace: RunnerNamespace, durable: () => Promise<void>) {
    this.#namespace = namespace;
    this.#durable = durable;
  }

  wake(): void {
    const now = Date.now();
    if (now - this.#visited < PATIENCE) return;
    this.#visited = now;
    void this.#visit();
  }

  async #visit(): Promise<void> {
    try {
      await this.#durable();
      const container = this.#namespace.get(this.#namespace.idFromName(NAME));
      await container.fetch("http://worker/health", { method: "GET" });
    } catch (error) {
      // The cron trigger comes, too.
      console.warn(JSON.stringify({ level: "warn", msg: "container not woken", reason: String(error) }));
    }
  }
}
