import { SETTLED } from "../../core/engine/index.ts";
import type { PromiseRecord, PromiseWatch } from "../../core/resonate/index.ts";

/** An execution that runs longer than this watches its job's promise. */
const WATCH_AFTER_MS = 2_000;

/** The pause before the promise is read again when the server could not be reached. */
const READ_AGAIN_AFTER_MS = 5_000;

/** Watches the promise of a job, from `start` on or when the execution takes long, and aborts the execution when it has settled. */
export class SettlementWatch {
  readonly #job: Pick<PromiseRecord, "id" | "createdAt">;
  readonly #watcher: Pick<PromiseWatch, "watch" | "leave">;
  readonly #execution: AbortController;
  #timer: NodeJS.Timeout;
  #state: "idle" | "watching" | "closed" = "idle";

  constructor(
    job: Pick<PromiseRecord, "id" | "createdAt">,
    watcher: Pick<PromiseWatch, "watch" | "leave">,
    execution: AbortController,
  ) {
    this.#job = job;
    this.#watcher = watcher;
    this.#execution = execution;
    this.#timer = setTimeout(() => this.start(), WATCH_AFTER_MS);
  }

  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "watching";
    void this.#check();
  }

  close(): void {
    clearTimeout(this.#timer);
    if (this.#state === "watching") this.#watcher.leave(this.#job.id, this.#check);
    this.#state = "closed";
  }

  readonly #check = async (): Promise<void> => {
    if (this.#state !== "watching") return;
    try {
      const { id, createdAt } = this.#job;
      const promise = await this.#watcher.watch(id, false, this.#check, createdAt);
      if (this.#state !== "watching") return this.#watcher.leave(this.#job.id, this.#check);
      if (promise && promise.state !== "pending") this.#execution.abort(SETTLED);
    } catch {
      if (this.#state === "watching") this.#timer = setTimeout(this.#check, READ_AGAIN_AFTER_MS);
    }
  };
}
