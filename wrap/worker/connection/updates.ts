/** The changes of a server's resources. There is a subscription for each resource whose changes jobs wait for. */
import { within } from "../../../core/resonate/index.ts";

/** A subscription at the server. */
export interface Subscription {
  /** Resolves when the server has confirmed the subscription; rejects if the server refuses it. */
  confirmation: Promise<unknown>;
  end(): void;
}

interface Watch extends Subscription {
  /** Differs after each change, and from the states of all other subscriptions. */
  state: string;
  next: PromiseWithResolvers<void>;
  /** How many jobs wait for the next change. */
  waiterCount: number;
  idle?: NodeJS.Timeout;
}

/** How long a job waits for a change, in milliseconds. */
const MAX_WAIT_MS = 5 * 60_000;
/** How long a subscription outlasts its last waiting job, in milliseconds, so that the next job finds it. */
const IDLE_MS = 60_000;
/** How many states a token holds. */
const MAX_TOKEN_STATES = 20;

export class Updates {
  readonly #watches = new Map<string, Watch>();
  readonly #subscribe: (uri: string) => Subscription;

  constructor(subscribe: (uri: string) => Subscription) {
    this.#subscribe = subscribe;
  }

  /**
   * Resolves with a token for the state of a resource, once the token `since` does not hold that state, or after five minutes. Each
   * worker has states of its own, so a token also holds earlier ones: jobs that wait one after another may run on several workers.
   */
  async next(uri: string, since: unknown, signal: AbortSignal): Promise<string> {
    const states = typeof since === "string" ? since.split(" ") : [];
    const watch = this.#watches.get(uri) ?? this.#watch(uri);
    clearTimeout(watch.idle);
    watch.waiterCount += 1;
    const confirmation = watch.confirmation.catch((error) => {
      if (this.#watches.get(uri) === watch) this.#watches.delete(uri);
      throw error;
    });
    try {
      // A server may never confirm the subscription.
      await within(
        confirmation.then(() => (states.includes(watch.state) ? watch.next.promise : undefined)),
        MAX_WAIT_MS,
        signal,
      );
      signal.throwIfAborted();
      return [...new Set([...states, watch.state])].slice(-MAX_TOKEN_STATES).join(" ");
    } finally {
      watch.waiterCount -= 1;
      if (watch.waiterCount === 0) watch.idle = setTimeout(() => this.#drop(uri, watch), IDLE_MS).unref();
    }
  }

  /** Records that a resource, or a part of it, has changed. */
  onChange(uri: string): void {
    for (const [prefix, watch] of this.#watches) {
      if (!uri.startsWith(prefix)) continue;
      watch.state = crypto.randomUUID();
      watch.next.resolve();
      watch.next = Promise.withResolvers();
    }
  }

  close(why: Error): void {
    for (const uri of [...this.#watches.keys()]) this.fail(uri, why);
  }

  #watch(uri: string): Watch {
    const next = Promise.withResolvers<void>();
    const { confirmation, end } = this.#subscribe(uri);
    const watch: Watch = {
      confirmation: Promise.race([confirmation, next.promise]),
      end,
      state: crypto.randomUUID(),
      next,
      waiterCount: 0,
    };
    watch.confirmation.catch(() => {});
    this.#watches.set(uri, watch);
    return watch;
  }

  /** Ends the subscription; `why` is the error of those who wait for changes. */
  fail(uri: string, why: Error): void {
    const { end, next, idle } = this.#watches.get(uri) ?? {};
    clearTimeout(idle);
    this.#watches.delete(uri);
    next?.promise.catch(() => {});
    next?.reject(why);
    end?.();
  }

  #drop(uri: string, watch: Watch): void {
    if (watch.waiterCount > 0 || this.#watches.get(uri) !== watch) return;
    this.#watches.delete(uri);
    watch.end();
  }
}
