import { LRUCache } from "lru-cache";
import type {
  ListenerKey,
  PromiseRecord,
  PromiseWatch,
  ResonateClient,
  SettlementListener,
} from "../../core/resonate/index.ts";

/** The default bound on the memory for promises. */
const MAX_CHARACTERS = 32_000_000;

/** The memory of a promise besides its value. */
const PROMISE_CHARACTERS = 500;

/** How long after a promise was forgotten its listeners are called: if many are watched, each call may forget another. */
const CALL_AFTER_MS = 1_000;

interface WatchedPromise {
  promise: PromiseRecord;
  /** The connection over which its settlement is reported. */
  connection: number;
  /** By those for whom they listen. */
  listeners: Map<unknown, Registration>;
}

interface Registration {
  listener: SettlementListener;
  execution: number;
}

/**
 * Remembers promises that jobs wait for, and reports when they settle. Asks the server once for each promise, and again at the
 * next `watch` after the connection was lost, because a settlement may have been missed. The standalone server's connections are
 * also replaced while they are quiet.
 */
export class PromiseWatcher implements PromiseWatch {
  readonly #client: ResonateClient;
  readonly #timeoutMs: number;
  readonly #watched: LRUCache<string, WatchedPromise>;
  #address = "";
  #connection = 0;
  #isConnected = false;

  /** `timeoutMs`: how long an unreachable server is retried. */
  constructor(client: ResonateClient, timeoutMs: number, maxCharacters = MAX_CHARACTERS) {
    this.#client = client;
    this.#timeoutMs = timeoutMs;
    this.#watched = new LRUCache({
      maxSize: maxCharacters,
      sizeCalculation: ({ promise }) => PROMISE_CHARACTERS + (promise.value.data?.length ?? 0),
      dispose: ({ listeners }, _id, reason) => {
        if (reason === "evict" && listeners.size > 0) setTimeout(() => call(listeners), CALL_AFTER_MS).unref?.();
      },
    });
  }

  /** Must be called when a connection is open at this address. Calls all listeners, as settlements may have been missed. */
  noteConnected(address: string): void {
    this.#address = address;
    this.#connection += 1;
    this.#isConnected = true;
    for (const { listeners } of [...this.#watched.values()]) {
      // A server that was restored meanwhile counts executions anew.
      for (const registration of listeners.values()) registration.execution = 0;
      call(listeners);
    }
  }

  noteDisconnected(): void {
    this.#isConnected = false;
  }

  noteCreated({ id, createdAt }: Pick<PromiseRecord, "id" | "createdAt">): void {
    const watched = this.#watched.get(id);
    if (!watched || watched.promise.createdAt >= createdAt) return;
    this.#watched.delete(id);
    call(watched.listeners);
  }

  /** Must be called when the server reports that a promise has settled. */
  noteSettled(promise: PromiseRecord): void {
    const watched = this.#watched.get(promise.id);
    if (watched && watched.promise.createdAt > promise.createdAt) return;
    this.#watched.set(promise.id, { promise, connection: this.#connection, listeners: new Map() });
    if (watched) call(watched.listeners, promise);
  }

  async watch(
    id: string,
    fresh: boolean,
    listener: SettlementListener,
    since = 0,
    { by, execution }: ListenerKey = { by: listener, execution: 0 },
  ): Promise<PromiseRecord | undefined> {
    const isOver = ({ promise: { state, settledAt = 0 } }: WatchedPromise) => state !== "pending" && settledAt >= since;
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
    if (!isPending && latest) call(latest.listeners, promise);
    if (isPending && connection !== this.#connection) listener();
    return promise;
  }

  leave(id: string, by: unknown): void {
    this.#watched.get(id)?.listeners.delete(by);
  }

  async #fetch(id: string): Promise<PromiseRecord | undefined> {
    const options = { origin: id, retryForMs: this.#timeoutMs };
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
function register(listeners: WatchedPromise["listeners"], by: unknown, registration: Registration): void {
  if (registration.execution >= (listeners.get(by)?.execution ?? 0)) listeners.set(by, registration);
}

function call(listeners: WatchedPromise["listeners"], promise?: PromiseRecord): void {
  for (const { listener } of [...listeners.values()]) listener(promise);
}
