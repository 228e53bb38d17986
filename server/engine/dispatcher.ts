/**
 * Brings messages to the connections that they are addressed to.
 *
 * As on the real server, the news of a settled promise is dropped when its address has no connection. A dispatch of a task
 * waits until a worker claims the task: it goes to the first worker of its group that connects, and moves on when the worker
 * that received it disconnects. The protocol allows a dispatch to be repeated or late at any time, since a claim names the
 * task's version.
 *
 * What waits is in the store. Kept here is only what each connection has received and how far the queue of each group has
 * been read, so that a long queue takes no memory and a start reads nothing.
 */
import { parsePollAddress } from "../wire/poll-address.ts";
import type { Connections, PollConnection } from "../wire/poll-connections.ts";
import type { Change } from "./records.ts";
import { RETRY_INTERVAL } from "./state-machine.ts";
import type { QueuePosition, Store, UnclaimedTask } from "./store.ts";

/** How many tasks one connection may have received without claiming them. */
const MAX_UNCLAIMED = 10_000;
/** How many unclaimed tasks are read at a time. */
const PAGE = 100;

const START: QueuePosition = { timer: 0, id: "" };

/** Tasks that one connection has received and not claimed, by id. */
type Received = Map<string, UnclaimedTask>;

export class Dispatcher {
  readonly #connections: Connections;
  readonly #store: Store;
  readonly #onWorkerMissing: (group: string) => void;
  readonly #received = new Map<PollConnection, Received>();
  readonly #receivedWith = new Map<string, Received>();
  /** Up to where the queue of each group has been read; undefined when nothing is queued after that. */
  readonly #readUpTo = new Map<string, QueuePosition | undefined>();

  /** `onWorkerMissing` is told of a group that has a task and no connected worker. */
  constructor(connections: Connections, store: Store, onWorkerMissing: (group: string) => void = () => {}) {
    this.#connections = connections;
    this.#store = store;
    this.#onWorkerMissing = onWorkerMissing;
  }

  /** Delivers the messages among `changes`. Returns the tasks that were dispatched from the queue and need their timer back. */
  deliver(changes: readonly Change[]): string[] {
    const claimers = new Set<Received>();
    for (const change of changes) {
      if (change.kind !== "task" || change.task.state === "pending") continue;
      const received = this.#forget(change.task.id);
      if (received) claimers.add(received);
    }
    for (const change of changes) {
      if (change.kind === "execute") {
        const { address, task, timer } = change;
        const unclaimed = { ...task, address, timer };
        if (!this.#send(unclaimed)) this.#enqueue(unclaimed);
      } else if (change.kind === "unblock") {
        const { address, message } = change;
        // A busy connection gets it only when there is no other.
        const connection = this.#connections.find(address, ({ busy }) => !busy) ?? this.#connections.find(address);
        if (connection) this.#connections.send(connection, JSON.stringify(message));
      }
    }
    return [...claimers].flatMap((received) => this.#refillAfterClaim(received));
  }

  /** A connection at its limit has claimed some tasks: it gets more. */
  #refillAfterClaim(received: Received): string[] {
    if (received.size > MAX_UNCLAIMED - PAGE) return [];
    return [...this.#received].flatMap(([connection, its]) =>
      its === received && connection.waiting.length === 0 ? this.refill(connection) : [],
    );
  }

  /** Sends a task to a connection of its address; false when none takes it. */
  #send(task: UnclaimedTask): boolean {
    this.#forget(task.id);
    const connection = this.#connections.find(task.address, (each) => this.#takes(each));
    if (!connection || !this.#connections.send(connection, executeMessage(task))) return false;
    const received: Received = this.#received.get(connection) ?? new Map();
    this.#received.set(connection, received.set(task.id, task));
    this.#receivedWith.set(task.id, received);
    return true;
  }

  /** Has the queue read again from a task that went to no connection. */
  #enqueue(task: UnclaimedTask): void {
    const group = parsePollAddress(task.address)?.group;
    if (group === undefined) return;
    if (!this.#connections.isConnected(group)) this.#onWorkerMissing(group);
    if (!this.#readUpTo.has(group)) return;
    const position = this.#readUpTo.get(group);
    if (!position || !isBefore(position, task)) this.#readUpTo.set(group, { timer: task.timer, id: "" });
  }

  /** The queue of the new connection's group is read again: some of it may be for this connection alone. */
  connected(connection: PollConnection): void {
    this.#readUpTo.set(connection.group, START);
  }

  /** Sends `connection` as much of its group's queue as it takes. Returns the tasks that need their timer back. */
  refill(connection: PollConnection): string[] {
    const { group } = connection;
    const soon = Date.now() + RETRY_INTERVAL;
    const late: string[] = [];
    for (;;) {
      const position = this.#readUpTo.get(group);
      if (!position || !this.#takes(connection)) return late;
      const page = this.#store.unclaimedTasks(group, position, PAGE, connection.isRunner ? soon : undefined);
      for (const task of page) {
        if (!this.#takes(connection)) return late;
        this.#readUpTo.set(group, task);
        // A task that is addressed to another connection waits for that one.
        if (!this.#receivedWith.has(task.id) && this.#send(task) && task.timer > soon) late.push(task.id);
      }
      if (page.length < PAGE) this.#readUpTo.set(group, undefined);
    }
  }

  /** `connection` has received a task that it will not claim. */
  declined(task: string, connection: PollConnection): void {
    if (this.#receivedWith.get(task) === this.#received.get(connection)) this.#forget(task);
  }

  /** Sends to other connections what `connection`, now closed, has received and not claimed. */
  disconnected(connection: PollConnection): void {
    const received = this.#received.get(connection);
    this.#received.delete(connection);
    for (const task of received?.values() ?? []) if (!this.#send(task)) this.#enqueue(task);
  }

  #takes(connection: PollConnection): boolean {
    const unclaimed = this.#received.get(connection)?.size ?? 0;
    return !connection.busy && !connection.closed && unclaimed < MAX_UNCLAIMED;
  }

  /** Returns the tasks that it was among. */
  #forget(task: string): Received | undefined {
    const received = this.#receivedWith.get(task);
    received?.delete(task);
    this.#receivedWith.delete(task);
    return received;
  }
}

const isBefore = (a: QueuePosition, b: QueuePosition) => a.timer < b.timer || (a.timer === b.timer && a.id < b.id);

function executeMessage({ id, version }: UnclaimedTask): string {
  return JSON.stringify({ kind: "execute", head: {}, data: { task: { id, version } } });
}
