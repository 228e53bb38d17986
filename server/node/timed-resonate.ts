import { LISTENER_SWEEP_INTERVAL_MS, Resonate, type ServerLog } from "../engine/resonate.ts";
import { type SweepPosition, sweep, sweepInterval } from "../engine/retention.ts";
import type { Store } from "../engine/store.ts";

/** How often time-outs are handled. Under little load, no timer is later than this. */
const TICK_INTERVAL_MS = 50;
/** How long to wait after a failed write. */
const FAILURE_PAUSE_MS = 1_000;
/** The pause between two batches of a sweep, which leaves time for requests. */
const BATCH_PAUSE_MS = 20;
const MAX_SWEEP_INTERVAL_MS = 3_600_000;

/** The server in a process: timers handle time-outs and the retention. */
export class TimedResonate extends Resonate {
  readonly #listenerTimer: NodeJS.Timeout;
  #ticker: NodeJS.Timeout | undefined;
  #sweeper: NodeJS.Timeout | undefined;

  /** `retention`: how long finished jobs are kept, in milliseconds; default forever. */
  constructor(store: Store, log: ServerLog, { retention }: { retention?: number | undefined } = {}) {
    super(store, { log, runSoon: setImmediate });
    this.#tick();
    this.#listenerTimer = setInterval(() => this.dropDisconnectedListeners(), LISTENER_SWEEP_INTERVAL_MS);
    if (retention !== undefined) this.#sweepLater(store, retention);
  }

  /** Handles due time-outs in batches, so that requests are answered in between. */
  #tick(): void {
    const wasDue = this.tick();
    const pause = wasDue === undefined ? FAILURE_PAUSE_MS : wasDue ? 0 : TICK_INTERVAL_MS;
    this.#ticker = setTimeout(() => this.#tick(), pause);
  }

  /** Sweeps the stored jobs in batches, after `position`, or from the first on after a longer pause. */
  #sweepLater(store: Store, retention: number, position?: SweepPosition): void {
    const pause = position ? BATCH_PAUSE_MS : sweepInterval(retention, MAX_SWEEP_INTERVAL_MS);
    this.#sweeper = setTimeout(() => {
      let next: SweepPosition | undefined;
      const isWritten = this.write(() => {
        next = sweep(store, Date.now(), retention, position);
      });
      this.#sweepLater(store, retention, isWritten ? next : undefined);
    }, pause).unref();
  }

  override close(): void {
    clearTimeout(this.#ticker);
    clearInterval(this.#listenerTimer);
    clearTimeout(this.#sweeper);
    super.close();
  }
}
