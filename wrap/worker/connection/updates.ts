/** The changes of a server's resources: a subscription for each resource that jobs wait for. */

/** A subscription at the server. */
export interface Subscription {
  /** Rejects where the server refuses it. */
  begun: Promise<unknown>;
  end(): void;
}

interface Watched {
  subscription: Subscription;
  /** How many changes there were. */
  count: number;
  next: PromiseWithResolvers<void>;
  /** How many jobs wait for the next one. */
  waiting: number;
  idle?: NodeJS.Timeout;
}

/** How long a job waits for a change, in milliseconds. */
const LONGEST = 5 * 60_000;
/** How long a subscription lasts that no job waits for: until the next job is there. */
const IDLE = 60_000;

export class Updates {
  /** Tells the changes of this connection from those of others. */
  readonly #epoch = crypto.randomUUID();
  readonly #watched = new Map<string, Watched>();
  readonly #subscribe: (uri: string) => Subscription;

  constructor(subscribe: (uri: string) => Subscription) {
    this.#subscribe = subscribe;
  }

  /** Resolves with what stands for the state of a resource, once that is another than `since`, or after a while. */
  async next(uri: string, since: unknown, signal: AbortSignal): Promise<string> {
    const watched = this.#watched.get(uri) ?? this.#watch(uri);
    const state = () => `${this.#epoch} ${watched.count}`;
    clearTimeout(watched.idle);
    watched.waiting += 1;
    const over = Promise.withResolvers<void>();
    over.promise.catch(() => {});
    const timer = setTimeout(over.resolve, LONGEST);
    const abort = () => over.reject(signal.reason);
    signal.addEventListener("abort", abort);
    try {
      await watched.subscription.begun.catch((error) => {
        if (this.#watched.get(uri) === watched) this.#watched.delete(uri);
        throw error;
      });
      if (since === state()) await Promise.race([watched.next.promise, over.promise]);
      return state();
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      watched.waiting -= 1;
      if (watched.waiting === 0) watched.idle = setTimeout(() => this.#drop(uri, watched), IDLE).unref();
    }
  }

  /** A resource, or what is part of it, has changed. */
  heard(uri: string): void {
    for (const [each, watched] of this.#watched) {
      if (!uri.startsWith(each)) continue;
      watched.count += 1;
      watched.next.resolve();
      watched.next = Promise.withResolvers();
    }
  }

  forget(uri: string): void {
    this.#fail(uri, new Error("the server has ended the subscription"));
  }

  close(why: Error): void {
    for (const uri of [...this.#watched.keys()]) this.#fail(uri, why);
  }

  #watch(uri: string): Watched {
    const subscription = this.#subscribe(uri);
    subscription.begun.catch(() => {});
    const watched: Watched = { subscription, count: 0, next: Promise.withResolvers(), waiting: 0 };
    this.#watched.set(uri, watched);
    return watched;
  }

  #fail(uri: string, why: Error): void {
    const { next, idle } = this.#watched.get(uri) ?? {};
    clearTimeout(idle);
    this.#watched.delete(uri);
    next?.promise.catch(() => {});
    next?.reject(why);
  }

  #drop(uri: string, watched: Watched): void {
    if (watched.waiting > 0 || this.#watched.get(uri) !== watched) return;
    this.#watched.delete(uri);
    watched.subscription.end();
  }
}
