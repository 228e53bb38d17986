/** The changes of a server's resources. There is a subscription for each resource whose changes jobs wait for. */
import { within } from "../../../core/resonate/pacing/backoff.ts";

/** A subscription at the server. */
export interface Subscription {
  /** Rejects if the server refuses the subscription. */
  begun: Promise<unknown>;
  end(): void;
}

interface Watched extends Subscription {
  /** Differs after each change, and from the states of all other subscriptions. */
  state: string;
  next: PromiseWithResolvers<void>;
  /** How many jobs wait for the next change. */
  waiting: number;
  idle?: NodeJS.Timeout;
}

/** How long a job waits for a change, in milliseconds. */
const LONGEST = 5 * 60_000;
/** How long a subscription outlasts its last waiting job, in milliseconds, so that the next job finds it. */
const IDLE = 60_000;
/** How many states a token holds. */
const MOST_STATES = 20;

export class Updates {
  readonly #watched = new Map<string, Watched>();
  readonly #subscribe: (uri: string) => Subscription;

  constructor(subscribe: (uri: string) => Subscription) {
    this.#subscribe = subscribe;
  }

  /**
   * Resolves with a token for the state of a resource, once the token `since` does not hold that state, or after five minutes. Each
   * worker has states of its own, so a token also holds earlier ones: jobs that wait one after another may run on several workers.
   */
  async next(uri: string, since: unknown, signal: AbortSignal): Promise<string> {
    const known = typeof since === "string" ? since.split(" ") : [];
    const watched = this.#watched.get(uri) ?? this.#watch(uri);
    clearTimeout(watched.idle);
    watched.waiting += 1;
    const begun = watched.begun.catch((error) => {
      if (this.#watched.get(uri) === watched) this.#watched.delete(uri);
      throw error;
    });
    try {
      // A server may never say that it has begun the subscription.
      await within(
        begun.then(() => (known.includes(watched.state) ? watched.next.promise : undefined)),
        LONGEST,
        signal,
      );
      signal.throwIfAborted();
      return [...new Set([...known, watched.state])].slice(-MOST_STATES).join(" ");
    } finally {
      watched.waiting -= 1;
      if (watched.waiting === 0) watched.idle = setTimeout(() => this.#drop(uri, watched), IDLE).unref();
    }
  }

  /** Records that a resource, or a part of it, has changed. */
  heard(uri: string): void {
    for (const [each, watched] of this.#watched) {
      if (!uri.startsWith(each)) continue;
      watched.state = crypto.randomUUID();
      watched.next.resolve();
      watched.next = Promise.withResolvers();
    }
  }

  close(why: Error): void {
    for (const uri of [...this.#watched.keys()]) this.fail(uri, why);
  }

  #watch(uri: string): Watched {
    const next = Promise.withResolvers<void>();
    const { begun, end } = this.#subscribe(uri);
    const watched = { begun: Promise.race([begun, next.promise]), end, state: crypto.randomUUID(), next, waiting: 0 };
    watched.begun.catch(() => {});
    this.#watched.set(uri, watched);
    return watched;
  }

  /** Ends the subscription, and says why to those who wait for changes. */
  fail(uri: string, why: Error): void {
    const { end, next, idle } = this.#watched.get(uri) ?? {};
    clearTimeout(idle);
    this.#watched.delete(uri);
    next?.promise.catch(() => {});
    next?.reject(why);
    end?.();
  }

  #drop(uri: string, watched: Watched): void {
    if (watched.waiting > 0 || this.#watched.get(uri) !== watched) return;
    this.#watched.delete(uri);
    watched.end();
  }
}
