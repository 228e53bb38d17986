import { SETTLED } from "../../core/engine/runtime.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import type { PromiseWatcher } from "../../worker/connection/promise-watcher.ts";

/** An execution that runs longer than this watches its job's promise, in milliseconds. */
const LONG = 2_000;

/** The pause before the promise is read again when the server could not be reached, in milliseconds. */
const READ_AGAIN_AFTER = 5_000;

/** Aborts an execution when its job is settled by a cancellation or by another worker. */
export class SettlementWatch {
  readonly #job: Pick<PromiseRecord, "id" | "createdAt">;
  readonly #watcher: PromiseWatcher;
  readonly #execution: AbortController;
  #timer: NodeJS.Timeout;
  #state: "idle" | "watching" | "closed" = "idle";

  constructor(job: Pick<PromiseRecord, "id" | "createdAt">, watcher: PromiseWatcher, execution: AbortController) {
    this.#job = job;
    this.#watcher = watcher;
    this.#execution = execution;
    this.#timer = setTimeout(() => this.start(), LONG);
  }

  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "watching";
    void this.#look();
  }

  close(): void {
    this.#state = "closed";
    clearTimeout(this.#timer);
    this.#watcher.leave(this.#job.id, this.#look);
  }

  readonly #look = async (): Promise<void> => {
    if (this.#state !== "watching") return;
    try {
      const { id, createdAt } = this.#job;
      const promise = await this.#watcher.watch(id, false, this.#look, createdAt);
      if (this.#state !== "watching") return this.close();
      if (promise && promise.state !== "pending") this.#execution.abort(SETTLED);
    } catch {
      if (this.#state === "watching") this.#timer = setTimeout(this.#look, READ_AGAIN_AFTER);
    }
  };
}
