import { LRUCache } from "lru-cache";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";

/** The default bound on the memory for promises, in characters. */
const MAX_SIZE = 32_000_000;

/** How long after a promise was forgotten its listeners are called: if many are watched, each call may forget another. */
const AFTER_FORGOTTEN = 1_000;

/** Called with a promise that has settled; without it if its settlement may have been missed, until it is watched again. */
type Listener = (promise?: PromiseRecord) => void;

interface Watched {
  promise: PromiseRecord;
  /** The connection over which its settlement is reported. */
  connection: number;
  /** By those for whom they listen. */
  listeners: Map<unknown, Registered>;
}

interface Registered {
  listener: Listener;
  execution: number;
}

/** For whom a listener listens, in place of the listener of an earlier execution. */
interface Listening {
  by: unknown;
  execution: number;
}

/**
 * Remembers promises that jobs wait for, and reports when they settle. Asks the server once for each promise, and again at the
 * next `watch` after the connection was lost, because a settlement may have been missed. The standalone server's connections are
 * also replaced while they are quiet.
 */
export class PromiseWatcher {
  readonly #client: ResonateClient;
  readonly #patience: number;
  readonly #watched: LRUCache<string, Watched>;
  #address = "";
  #connection = 0;
  #isConnected = false;

  /** `patience`: how long an unreachable server is retried, in milliseconds. */
  constructor(client: ResonateClient, patience: number, maxSize = MAX_SIZE) {
    this.#client = client;
    this.#patience = patience;
    this.#watched = new LRUCache({
      maxSize,
      sizeCalculation: ({ promise }) => 500 + (promise.value.data?.length ?? 0),
      dispose: ({ listeners }, _id, reason) => {
        if (reason === "evict" && listeners.size > 0) setTimeout(() => tell(listeners), AFTER_FORGOTTEN).unref?.();
      },
    });
  }

  /** Must be called when a connection is open at this address. Calls all listeners, as settlements may have been missed. */
  connected(address: string): void {
    this.#address = address;
    this.#connection += 1;
    this.#isConnected = true;
    for (const { listeners } of [...this.#watched.values()]) {
      // A server that was restored meanwhile counts executions anew.
      for (const registered of listeners.values()) registered.execution = 0;
      tell(listeners);
    }
  }

  disconnected(): void {
    this.#isConnected = false;
  }

  /** Must be called when a promise has been created. One of the same id that was removed before is forgotten. */
  begun({ id, createdAt }: Pick<PromiseRecord, "id" | "createdAt">): void {
    const watched = this.#watched.get(id);
    if (!watched || watched.promise.createdAt >= createdAt) return;
    this.#watched.delete(id);
    tell(watched.listeners);
  }

  /** Must be called when the server reports that a promise has settled. */
  settled(promise: PromiseRecord): void {
    const watched = this.#watched.get(promise.id);
    if (watched && watched.promise.createdAt > promise.createdAt) return;
    this.#watched.set(promise.id, { promise, connection: this.#connection, listeners: new Map() });
    if (watched) tell(watched.listeners, promise);
  }

  /**
   * Resolves with the promise, or undefined if there is none. Calls `listener` when it settles. With `fresh`, asks the server
   * even if a pending promise is remembered. A promise that settled before `since` is not taken from memory: it may have been
   * removed, and another one created under its id. `since`: in milliseconds since the epoch, by the server's clock.
   */
  async watch(
    id: string,
    fresh: boolean,
    listener: Listener,
    since = 0,
    { by, execution }: Listening = { by: listener, execution: 0 },
  ): Promise<PromiseRecord | undefined> {
    const isOver = ({ promise: { state, settledAt = 0 } }: Watched) => state !== "pending" && settledAt >= since;
    const watched = this.#watched.get(id);
    if (watched && isOver(watched)) return watched.promise;
    if (
      watched?.promise.state === "pending" &&
      !fresh &&
      this.#isConnected &&
      watched.connection === this.#connection
    ) {
      register(watched.listeners, by, { listener, execution });
      return watched.promise;
    }
    const connection = this.#connection;
    const promise = await this.#fetch(id);
    if (!promise) return undefined;
    const latest = this.#watched.get(id);
    if (latest && isOver(latest)) return latest.promise;
    const isPending = promise.state === "pending";
    const listeners = new Map(isPending ? latest?.listeners : []);
    if (isPending) register(listeners, by, { listener, execution });
    this.#watched.set(id, { promise, connection, listeners });
    // Nobody may have listened to it since the connection was replaced.
    if (!isPending && latest) tell(latest.listeners, promise);
    if (isPending && connection !== this.#connection) listener();
    return promise;
  }

  /** Forgets a listener. */
  leave(id: string, by: unknown): void {
    this.#watched.get(id)?.listeners.delete(by);
  }

  async #fetch(id: string): Promise<PromiseRecord | undefined> {
    const options = { origin: id, patience: this.#patience };
    if (this.#isConnected) {
      const data = { awaited: id, address: this.#address };
      const answer = await this.#client.send("promise.register_listener", data, options);
      if (answer.status === 200) return answer.data.promise;
      if (answer.status === 404) return undefined;
    }
    const answer = await this.#client.send("promise.get", { id }, options);
    return answer.status === 200 ? answer.data.promise : undefined;
  }
}

/** An earlier execution, which may still register what it awaited, does not replace the listener of a later one. */
function register(listeners: Watched["listeners"], by: unknown, registered: Registered): void {
  if (registered.execution >= (listeners.get(by)?.execution ?? 0)) listeners.set(by, registered);
}

function tell(listeners: Watched["listeners"], promise?: PromiseRecord): void {
  for (const { listener } of [...listeners.values()]) listener(promise);
}
