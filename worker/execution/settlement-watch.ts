import { SETTLED } from "../../core/engine/runtime.ts";
import type { PromiseWatcher } from "../intake/promise-watcher.ts";

/** An execution that runs longer than this watches its job's promise, in milliseconds. */
const LONG = 2_000;

/** Aborts an execution when its job is settled by a cancellation or by another worker. */
export class SettlementWatch {
  readonly #id: string;
  readonly #watcher: PromiseWatcher;
  readonly #execution: AbortController;
  readonly #timer: NodeJS.Timeout;
  #state: "idle" | "watching" | "closed" = "idle";

  constructor(id: string, watcher: PromiseWatcher, execution: AbortController) {
    this.#id = id;
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
  }

  async #look(): Promise<void> {
    const promise = await this.#watcher.watch(this.#id, false, () => void this.#look()).catch(() => undefined);
    if (this.#state === "watching" && promise && promise.state !== "pending") this.#execution.abort(SETTLED);
  }
}
