import type { Store } from "../engine/store.ts";
import { Resonate, type ServerLog } from "../resonate.ts";
import { Sweeper } from "./sweeper.ts";

/** How often, in milliseconds, time-outs are handled: the most that a timer is late under little load. */
const TICK_INTERVAL = 50;
/** How long to wait, in milliseconds, after a failed write. */
const FAILURE_PAUSE = 1_000;
/** How often, in milliseconds, listeners without a connection are dropped. */
const LISTENER_INTERVAL = 120_000;

/** The server in a process, with timers for what is due. */
export class TimedResonate extends Resonate {
  readonly #listenerTimer: NodeJS.Timeout;
  readonly #sweeper: Sweeper | undefined;
  #ticker: NodeJS.Timeout | undefined;

  /** `keep`: how long ended jobs are kept, in milliseconds; default for ever. */
  constructor(store: Store, log: ServerLog, { keep }: { keep?: number | undefined } = {}) {
    super(store, { log, soon: setImmediate });
    this.#tick();
    this.#listenerTimer = setInterval(() => this.dropDisconnectedListeners(), LISTENER_INTERVAL);
    const commit = (work: () => void) => this.commit(() => ({ result: work() ?? true, changes: [] })) !== undefined;
    this.#sweeper = keep === undefined ? undefined : new Sweeper(store, keep, commit);
  }

  /** Handles what is due, in pieces, with time for requests in between. */
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
