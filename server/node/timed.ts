import type { Store } from "../engine/store.ts";
import type { ServerLog } from "../resonate.ts";
import { Resonate } from "../resonate.ts";
import { Retention } from "./retention.ts";

/** How often, in milliseconds, it is checked whether something is due: the most a timer is late while little happens. */
const TICK_INTERVAL = 50;
/** How long, in milliseconds, to leave a disk alone that could not be written to. */
const FAILURE_PAUSE = 1_000;
/** How often, in milliseconds, listeners are checked for whether their address is still connected. */
const LISTENER_INTERVAL = 120_000;

/** The server in a process that is there all the time: timers of its own see to what is due. */
export class TimedResonate extends Resonate {
  readonly #sweeper: NodeJS.Timeout;
  readonly #retention: Retention | undefined;
  #ticker: NodeJS.Timeout | undefined;

  /** `keep`: for how long a job that has ended is kept, in milliseconds; for ever when left out. */
  constructor(store: Store, log: ServerLog, { keep }: { keep?: number | undefined } = {}) {
    super(store, { log, soon: setImmediate });
    this.#tick();
    this.#sweeper = setInterval(() => this.dropUnheardListeners(), LISTENER_INTERVAL);
    const commit = (work: () => void) => this.commit(() => ({ result: work() ?? true, changes: [] })) !== undefined;
    this.#retention = keep === undefined ? undefined : new Retention(store, keep, commit);
  }

  /** Handles what is due, in pieces, with time for requests in between. */
  #tick(): void {
    const found = this.tick();
    const pause = found === undefined ? FAILURE_PAUSE : found ? 0 : TICK_INTERVAL;
    this.#ticker = setTimeout(() => this.#tick(), pause);
  }

  override close(): void {
    clearTimeout(this.#ticker);
    clearInterval(this.#sweeper);
    this.#retention?.stop();
    super.close();
  }
}
