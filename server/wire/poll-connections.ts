/** The open poll connections: finds the connection for an address, and holds the messages that wait to be written to each. */
import type { UnclaimedTask } from "../engine/store.ts";
import { parsePollAddress } from "./poll-address.ts";

/** The real server's limit. */
const MAX_CONNECTIONS = 1000;
/** How many messages may wait for one reader before tasks are dispatched to other readers; the real server's limit. */
const MAX_WAITING = 100;
/** How many characters may wait for all readers together. Further messages are dropped. */
const MAX_WAITING_CHARACTERS = 64 * 1024 * 1024;

/**
 * The comment that is written to each event stream at the start and then every `interval` milliseconds. It shows the reader
 * that the connection is alive, and reveals a dead connection to this server.
 */
export const KEEP_ALIVE = { interval: 5_000, comment: ": keep-alive\n\n" };

export class PollConnection {
  readonly group: string;
  readonly id: string;
  /** Whether a runner reads the messages. A runner is not sent tasks that were deferred because a runner declined them. */
  readonly isRunner: boolean;
  /** Messages not yet written. */
  readonly waiting: string[] = [];
  /** The tasks that the reader was sent and has not claimed, by id. */
  readonly unclaimed = new Map<string, UnclaimedTask>();
  /** The sequence number, among the sends to all connections, of the last message to this one. */
  lastSend = 0;
  closed = false;
  wake: () => void = () => {};

  constructor(group: string, id: string, isRunner: boolean) {
    this.group = group;
    this.id = id;
    this.isRunner = isRunner;
  }

  get busy(): boolean {
    return this.waiting.length >= MAX_WAITING;
  }
}

export class Connections {
  readonly #groups = new Map<string, Set<PollConnection>>();
  #sends = 0;
  #waitingCharacters = 0;

  /** Registers a connection; undefined when there are too many. A connection that will be replaced does not count. */
  open(group: string, id: string, isRunner: boolean): PollConnection | undefined {
    const count = [...this.#groups.values()].reduce((sum, { size }) => sum + size, 0);
    if (count >= MAX_CONNECTIONS && !this.named(group, id)) return undefined;
    const connection = new PollConnection(group, id, isRunner);
    this.#groups.set(group, (this.#groups.get(group) ?? new Set()).add(connection));
    return connection;
  }

  isConnected(group: string): boolean {
    return this.#groups.has(group);
  }

  named(group: string, id: string): PollConnection | undefined {
    for (const connection of this.#groups.get(group) ?? []) if (connection.id === id) return connection;
    return undefined;
  }

  close(connection: PollConnection): void {
    if (connection.closed) return;
    connection.closed = true;
    for (const message of connection.waiting.splice(0)) this.#waitingCharacters -= message.length;
    const members = this.#groups.get(connection.group);
    members?.delete(connection);
    if (members?.size === 0) this.#groups.delete(connection.group);
    connection.wake();
  }

  closeAll(): void {
    for (const members of [...this.#groups.values()]) for (const connection of members) this.close(connection);
  }

  /**
   * The connection for `address`, among those that `takes` accepts: for `uni` the one with the id; for `any` also the one with
   * the id, or else the connections of the group in turn.
   */
  find(address: string, takes: (connection: PollConnection) => boolean = () => true): PollConnection | undefined {
    const target = parsePollAddress(address);
    if (!target) return undefined;
    const named = this.named(target.group, target.id);
    if (named && takes(named)) return named;
    if (target.cast === "uni") return undefined;
    let first: PollConnection | undefined;
    for (const connection of this.#groups.get(target.group) ?? [])
      if (takes(connection) && !(first && first.lastSend <= connection.lastSend)) first = connection;
    return first;
  }

  /** Queues `message` for `connection`; false when too many characters are waiting already. */
  send(connection: PollConnection, message: string): boolean {
    if (this.#waitingCharacters + message.length > MAX_WAITING_CHARACTERS) return false;
    this.#waitingCharacters += message.length;
    this.#sends += 1;
    connection.lastSend = this.#sends;
    connection.waiting.push(message);
    connection.wake();
    return true;
  }

  /** Resolves with the next messages to write to `connection`, or with undefined when it is closed. */
  async next(connection: PollConnection): Promise<string[] | undefined> {
    while (!connection.closed) {
      if (connection.waiting.length > 0) {
        const messages = connection.waiting.splice(0);
        for (const { length } of messages) this.#waitingCharacters -= length;
        return messages;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      connection.wake = resolve;
      await promise;
    }
    return undefined;
  }
}
