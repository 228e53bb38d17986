import { LRUCache } from "lru-cache";
import type { ResonateClient } from "../../core/store/client.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";

/** What is known of promises that are none of a job's own, in characters altogether, where nothing else is said. */
const MAX_SIZE = 32_000_000;

interface Known {
  promise: PromiseRecord;
  /** The connection over which news of it comes. */
  connection: number;
  tell: Set<() => void>;
}

/**
 * News of promises, pushed over a connection of its own: a promise is asked for once, and then known. When the
 * connection was lost, news may have been too: each is asked for again when it is next looked at.
 */
export class PromiseWatcher {
  readonly #client: ResonateClient;
  #address = "";
  readonly #known: LRUCache<string, Known>;
  #connection = 0;
  #isConnected = false;

  constructor(client: ResonateClient, maxSize = MAX_SIZE) {
    this.#client = client;
    this.#known = new LRUCache({
      maxSize,
      sizeCalculation: ({ promise }) => 500 + (promise.value.data?.length ?? 0),
    });
  }

  /** A connection is open, at this address. What the one before was to tell may be lost. */
  connected(address: string): void {
    this.#address = address;
    this.#connection += 1;
    this.#isConnected = true;
  }

  disconnected(): void {
    this.#isConnected = false;
  }

  /** A promise has settled. */
  heard(promise: PromiseRecord): void {
    const known = this.#known.get(promise.id);
    this.#known.set(promise.id, { promise, connection: this.#connection, tell: new Set() });
    for (const tell of known?.tell ?? []) tell();
  }

  /** The promise; `tell` is called when it settles. `fresh`: as the server has it now. Undefined when there is none. */
  async watch(id: string, fresh: boolean, tell: () => void): Promise<PromiseRecord | undefined> {
    const known = this.#known.get(id);
    if (known && known.promise.state !== "pending") return known.promise;
    if (known && !fresh && this.#isConnected && known.connection === this.#connection) {
      known.tell.add(tell);
      return known.promise;
    }
    const connection = this.#connection;
    const promise = await this.#ask(id);
    if (!promise) return undefined;
    const latest = this.#known.get(id);
    if (latest && latest.promise.state !== "pending") return latest.promise;
    const waiting = new Set(promise.state === "pending" ? [...(latest?.tell ?? []), tell] : []);
    this.#known.set(id, { promise, connection, tell: waiting });
    return promise;
  }

  async #ask(id: string): Promise<PromiseRecord | undefined> {
    if (this.#isConnected) {
      const data = { awaited: id, address: this.#address };
      const answer = await this.#client.send("promise.register_listener", data, { origin: id });
      if (answer.status === 200) return answer.data.promise;
      if (answer.status === 404) return undefined;
    }
    const answer = await this.#client.send("promise.get", { id }, { origin: id });
    return answer.status === 200 ? answer.data.promise : undefined;
  }
}
