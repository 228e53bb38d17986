import { type SweepPosition, sweep } from "../engine/retention.ts";
import type { Store } from "../engine/store.ts";

/** How long to leave to requests between two batches, in milliseconds. */
const BATCH_PAUSE = 20;

/** How long to wait between two sweeps, in milliseconds: less where jobs are kept for less time. */
const LONGEST_PAUSE = 3_600_000;
const SHORTEST_PAUSE = 200;

/** Sweeps the stored jobs in batches, again and again, until it is stopped. */
export class Sweeper {
  readonly #store: Store;
  readonly #keep: number;
  readonly #commit: (work: () => void) => boolean;
  #timer: NodeJS.Timeout | undefined;
  #at: SweepPosition | undefined;

  /** `keep` is in milliseconds. `commit` runs work in a transaction; false when that failed. */
  constructor(store: Store, keep: number, commit: (work: () => void) => boolean) {
    this.#store = store;
    this.#keep = keep;
    this.#commit = commit;
    this.#schedule(this.#longPause);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  get #longPause(): number {
    return Math.min(Math.max(this.#keep / 10, SHORTEST_PAUSE), LONGEST_PAUSE);
  }

  #schedule(pause: number): void {
    this.#timer = setTimeout(() => this.#sweep(), pause);
    this.#timer.unref();
  }

  #sweep(): void {
    let next: SweepPosition | undefined;
    const done = this.#commit(() => {
      next = sweep(this.#store, Date.now(), this.#keep, this.#at);
    });
    this.#at = done ? next : undefined;
    this.#schedule(this.#at ? BATCH_PAUSE : this.#longPause);
  }
}
