import { type SweepPosition, sweep } from "../engine/retention.ts";
import type { Store } from "../engine/store.ts";
import { LISTENER_INTERVAL, Resonate, type ServerLog } from "../resonate.ts";

/** How often time-outs are handled, in milliseconds. Under little load, no timer is later than this. */
const TICK_INTERVAL = 50;
/** How long to wait after a failed write, in milliseconds. */
const FAILURE_PAUSE = 1_000;

/** The server in a process: timers handle time-outs and the retention. */
export class TimedResonate extends Resonate {
  readonly #listenerTimer: NodeJS.Timeout;
  readonly #sweeper: Sweeper | undefined;
  #ticker: NodeJS.Timeout | undefined;

  /** `keep`: how long ended jobs are kept, in milliseconds; default forever. */
  constructor(store: Store, log: ServerLog, { keep }: { keep?: number | undefined } = {}) {
    super(store, { log, soon: setImmediate });
    this.#tick();
    this.#listenerTimer = setInterval(() => this.dropDisconnectedListeners(), LISTENER_INTERVAL);
    const commit = (work: () => void) => this.commit(() => ({ result: work() ?? true, changes: [] })) !== undefined;
    this.#sweeper = keep === undefined ? undefined : new Sweeper(store, keep, commit);
  }

  /** Handles due time-outs in batches, so that requests are answered in between. */
  #tick(): void {
    const found = this.tick();
    const pause = found === undefined ? FAILURE_PAUSE : found ? 0 : TICK_INTERVAL;
    this.#ticker = setTimeout(() => this.#tick(), pause);
  }

  override close(): void {
    clearTimeout(this.#ticker);
    clearInterval(this.#listenerTimer);
    this.#sweeper?.stop();
    super.close();
  }
}

/** The pause between two batches of a sweep, which leaves time for requests, in milliseconds. */
const BATCH_PAUSE = 20;

/** The bounds of the pause between two sweeps, which is a tenth of the retention, in milliseconds. */
const LONGEST_PAUSE = 3_600_000;
const SHORTEST_PAUSE = 200;

/** Sweeps the stored jobs in batches, repeatedly, until it is stopped. */
class Sweeper {
  readonly #store: Store;
  readonly #keep: number;
  readonly #commit: (work: () => void) => boolean;
  #timer: NodeJS.Timeout | undefined;
  #at: SweepPosition | undefined;

  /** `keep` is in milliseconds. `commit` runs work in a transaction, and returns false when the transaction failed. */
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
