import { type SweepPosition, sweep } from "../engine/retention.ts";
import type { Store } from "../engine/store.ts";
import { LISTENER_INTERVAL, Resonate, type ServerLog } from "../resonate.ts";

/** How often time-outs are handled, in milliseconds. Under little load, no timer is later than this. */
const TICK_INTERVAL = 50;
/** How long to wait after a failed write, in milliseconds. */
const FAILURE_PAUSE = 1_000;
/** The pause between two batches of a sweep, which leaves time for requests, in milliseconds. */
const BATCH_PAUSE = 20;
/** The bounds of the pause between two sweeps, which is a tenth of the retention, in milliseconds. */
const LONGEST_PAUSE = 3_600_000;
const SHORTEST_PAUSE = 200;

/** The server in a process: timers handle time-outs and the retention. */
export class TimedResonate extends Resonate {
  readonly #listenerTimer: NodeJS.Timeout;
  #ticker: NodeJS.Timeout | undefined;
  #sweeper: NodeJS.Timeout | undefined;

  /** `keep`: how long ended jobs are kept, in milliseconds; default forever. */
  constructor(store: Store, log: ServerLog, { keep }: { keep?: number | undefined } = {}) {
    super(store, { log, soon: setImmediate });
    this.#tick();
    this.#listenerTimer = setInterval(() => this.dropDisconnectedListeners(), LISTENER_INTERVAL);
    if (keep !== undefined) this.#sweepLater(store, keep);
  }

  /** Handles due time-outs in batches, so that requests are answered in between. */
  #tick(): void {
    const found = this.tick();
    const pause = found === undefined ? FAILURE_PAUSE : found ? 0 : TICK_INTERVAL;
    this.#ticker = setTimeout(() => this.#tick(), pause);
  }

  /** Sweeps the stored jobs in batches, after `at`, or from the first on after a longer pause. */
  #sweepLater(store: Store, keep: number, at?: SweepPosition): void {
    const pause = at ? BATCH_PAUSE : Math.min(Math.max(keep / 10, SHORTEST_PAUSE), LONGEST_PAUSE);
    this.#sweeper = setTimeout(() => {
      let next: SweepPosition | undefined;
      const isDone = this.write(() => {
        next = sweep(store, Date.now(), keep, at);
      });
      this.#sweepLater(store, keep, isDone ? next : undefined);
    }, pause).unref();
  }

  override close(): void {
    clearTimeout(this.#ticker);
    clearInterval(this.#listenerTimer);
    clearTimeout(this.#sweeper);
    super.close();
  }
}
