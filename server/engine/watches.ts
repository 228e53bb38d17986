/** Which connections are to learn of the ends of which promises. Nothing is stored: a watch ends with its connection. */
import type { PollConnection } from "./poll-connections.ts";

/** The largest number of promises that one connection watches; the earliest gives way, and its reader checks it later. */
const MAX_WATCHED_PROMISES = 50_000;

export class Watches {
  readonly #connections = new Map<string, Set<PollConnection>>();

  add(promise: string, connection: PollConnection): void {
    const { watchedPromises } = connection;
    watchedPromises.delete(promise);
    watchedPromises.add(promise);
    const [earliest] = watchedPromises;
    if (watchedPromises.size > MAX_WATCHED_PROMISES && earliest !== undefined) this.#remove(earliest, connection);
    this.#connections.set(promise, (this.#connections.get(promise) ?? new Set()).add(connection));
  }

  /** Ends the watches of a promise. Returns the connections that had them. */
  take(promise: string): PollConnection[] {
    const connections = [...(this.#connections.get(promise) ?? [])];
    for (const connection of connections) this.#remove(promise, connection);
    return connections;
  }

  /** Ends the watches of a connection. Returns their promises. */
  end(connection: PollConnection): string[] {
    const promises = [...connection.watchedPromises];
    for (const promise of promises) this.#remove(promise, connection);
    return promises;
  }

  #remove(promise: string, connection: PollConnection): void {
    connection.watchedPromises.delete(promise);
    const connections = this.#connections.get(promise);
    connections?.delete(connection);
    if (connections?.size === 0) this.#connections.delete(promise);
  }
}
