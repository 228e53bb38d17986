/** The open poll connections: finds the connection for an address, and queues the messages to be written to each. */
import { parsePollAddress } from "./poll-address.ts";
import type { UnclaimedTask } from "./task-queue.ts";

/** The standalone server's limit. */
const MAX_CONNECTIONS = 1000;
/** How many messages one reader's queue may have before tasks are dispatched to other readers; the standalone server's limit. */
const MAX_QUEUED_MESSAGES = 100;
/** How many characters the queues of all readers may have together. Further messages are dropped. */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;

export class PollConnection {
  readonly group: string;
  readonly id: string;
  /** Whether a runner reads the messages. A runner is not sent tasks that were deferred because a runner declined them. */
  readonly isRunner: boolean;
  /** The messages that are to be written. */
  readonly queue: string[] = [];
  /** The tasks that the reader was sent and has not claimed, by id. */
  readonly unclaimedTasks = new Map<string, UnclaimedTask>();
  /** The promises of whose ends the reader is to learn. */
  readonly watchedPromises = new Set<string>();
  /** The sequence number, among the sends to all connections, of the last message to this one. */
  lastSend = 0;
  isClosed = false;
  wake: () => void = () => {};

  constructor(group: string, id: string, isRunner: boolean) {
    this.group = group;
    this.id = id;
    this.isRunner = isRunner;
  }

  get isBusy(): boolean {
    return this.queue.length >= MAX_QUEUED_MESSAGES;
  }
}

export class PollConnections {
  readonly #groups = new Map<string, Set<PollConnection>>();
  #sends = 0;
  #queuedCharacters = 0;

  /** Registers a connection; undefined if there are too many. A connection that will be replaced does not count. */
  open(group: string, id: string, isRunner: boolean): PollConnection | undefined {
    const count = [...this.#groups.values()].reduce((sum, { size }) => sum + size, 0);
    if (count >= MAX_CONNECTIONS && !this.byId(group, id)) return undefined;
    const connection = new PollConnection(group, id, isRunner);
    this.#groups.set(group, (this.#groups.get(group) ?? new Set()).add(connection));
    return connection;
  }

  isConnected(group: string): boolean {
    return this.#groups.has(group);
  }

  byId(group: string, id: string): PollConnection | undefined {
    for (const connection of this.#groups.get(group) ?? []) if (connection.id === id) return connection;
    return undefined;
  }

  close(connection: PollConnection): void {
    if (connection.isClosed) return;
    connection.isClosed = true;
    for (const message of connection.queue.splice(0)) this.#queuedCharacters -= message.length;
    const members = this.#groups.get(connection.group);
    members?.delete(connection);
    if (members?.size === 0) this.#groups.delete(connection.group);
    connection.wake();
  }

  closeAll(): void {
    for (const members of [...this.#groups.values()]) for (const connection of members) this.close(connection);
  }

  /**
   * The connection for `address`, among those for which `isEligible` is true: for `uni` the one with the id; for `any` also the
   * one with the id, or else the connections of the group in turn.
   */
  find(address: string, isEligible: (connection: PollConnection) => boolean = () => true): PollConnection | undefined {
    const target = parsePollAddress(address);
    if (!target) return undefined;
    const addressee = this.byId(target.group, target.id);
    if (addressee && isEligible(addressee)) return addressee;
    if (target.cast === "uni") return undefined;
    let first: PollConnection | undefined;
    for (const connection of this.#groups.get(target.group) ?? [])
      if (isEligible(connection) && !(first && first.lastSend <= connection.lastSend)) first = connection;
    return first;
  }

  /** Queues `message` for `connection`; false if the queues have too many characters already. */
  send(connection: PollConnection, message: string): boolean {
    if (this.#queuedCharacters + message.length > MAX_QUEUED_CHARACTERS) return false;
    this.#queuedCharacters += message.length;
    this.#sends += 1;
    connection.lastSend = this.#sends;
    connection.queue.push(message);
    connection.wake();
    return true;
  }

  /** Resolves with the next messages to write to `connection`, or with undefined when it is closed. */
  async next(connection: PollConnection): Promise<string[] | undefined> {
    while (!connection.isClosed) {
      if (connection.queue.length > 0) {
        const messages = connection.queue.splice(0);
        for (const { length } of messages) this.#queuedCharacters -= length;
        return messages;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      connection.wake = resolve;
      await promise;
    }
    return undefined;
  }
}
