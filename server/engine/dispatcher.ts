/**
 * Sends messages to the connections that they are addressed to.
 *
 * As on the real server, the news of a settled promise is dropped when its address has no connection. A dispatch of a task
 * waits until a worker claims the task: it goes to the first worker of its group that connects, and to another one when that
 * worker disconnects. The protocol allows a dispatch to be repeated or late at any time, since a claim names the task's
 * version.
 *
 * The store holds the queue of unclaimed tasks. In memory are only the tasks that each connection has received and how far the
 * queue of each group has been read, so that a long queue takes no memory and a start reads nothing.
 */
import { parsePollAddress } from "../wire/poll-address.ts";
import type { Connections, PollConnection } from "../wire/poll-connections.ts";
import type { Change } from "./records.ts";
import { RETRY_INTERVAL } from "./state-machine.ts";
import type { QueuePosition, Store, UnclaimedTask } from "./store.ts";

/** The largest number of unclaimed tasks that one connection is sent. */
const MAX_UNCLAIMED = 10_000;
/** How many unclaimed tasks are read at a time. */
const PAGE = 100;

const START: QueuePosition = { timer: 0, id: "" };

export class Dispatcher {
  readonly #connections: Connections;
  readonly #store: Store;
  readonly #onWorkerMissing: (group: string) => void;
  /** The connections that have received tasks, by the tasks' ids. */
  readonly #receivers = new Map<string, PollConnection>();
  /** How far the queue of each group has been read; undefined when it has been read to its end. */
  readonly #readUpTo = new Map<string, QueuePosition | undefined>();

  /** `onWorkerMissing` is called with a group that has a task and no connected worker. */
  constructor(connections: Connections, store: Store, onWorkerMissing: (group: string) => void) {
    this.#connections = connections;
    this.#store = store;
    this.#onWorkerMissing = onWorkerMissing;
  }

  /** Delivers the messages among `changes`. Returns the parked or deferred tasks that were dispatched, to set their timers. */
  deliver(changes: readonly Change[]): string[] {
    const claimers = new Set<PollConnection>();
    for (const change of changes) {
      if (change.kind !== "task" || change.task.state === "pending") continue;
      const receiver = this.#forget(change.task.id);
      if (receiver) claimers.add(receiver);
    }
    for (const change of changes) {
      if (change.kind === "execute") {
        const { address, task, timer } = change;
        const unclaimed = { ...task, address, timer };
        if (!this.#send(unclaimed)) this.#enqueue(unclaimed);
      } else if (change.kind === "unblock") {
        const { address, message } = change;
        // A busy connection gets the news only when there is no other connection.
        const connection = this.#connections.find(address, ({ busy }) => !busy) ?? this.#connections.find(address);
        if (connection) this.#connections.send(connection, JSON.stringify(message));
      }
    }
    // A connection that had reached its limit may take more.
    const hasRoom = ({ unclaimed, waiting }: PollConnection) =>
      unclaimed.size <= MAX_UNCLAIMED - PAGE && waiting.length === 0;
    return [...claimers].flatMap((connection) => (hasRoom(connection) ? this.refill(connection) : []));
  }

  /** Sends a task to a connection at its address; false when no connection takes it. */
  #send(task: UnclaimedTask): boolean {
    this.#forget(task.id);
    const connection = this.#connections.find(task.address, (each) => this.#takes(each));
    if (!connection || !this.#connections.send(connection, executeMessage(task))) return false;
    connection.unclaimed.set(task.id, task);
    this.#receivers.set(task.id, connection);
    return true;
  }

  /** Resets the group's read position, so that the task, which went to no connection, is read again. */
  #enqueue(task: UnclaimedTask): void {
    const group = parsePollAddress(task.address)?.group;
    if (group === undefined) return;
    if (!this.#connections.isConnected(group)) this.#onWorkerMissing(group);
    if (!this.#readUpTo.has(group)) return;
    const position = this.#readUpTo.get(group);
    if (!position || !isBefore(position, task)) this.#readUpTo.set(group, { timer: task.timer, id: "" });
  }

  /** Has the queue of the group read again from the start: some tasks may be addressed to this connection alone. */
  connected(connection: PollConnection): void {
    this.#readUpTo.set(connection.group, START);
  }

  /** Sends `connection` as many tasks of its group's queue as it takes. Returns those that were parked or deferred. */
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
        // `#send` fails for a task that is addressed to another connection alone; it stays in the queue.
        if (!this.#receivers.has(task.id) && this.#send(task) && task.timer > soon) late.push(task.id);
      }
      if (page.length < PAGE) this.#readUpTo.set(group, undefined);
    }
  }

  /** Forgets a task that `connection` has received but will not claim. */
  declined(task: string, connection: PollConnection): void {
    if (this.#receivers.get(task) === connection) this.#forget(task);
  }

  /** Sends the unclaimed tasks of `connection`, which is closed, to other connections. */
  disconnected(connection: PollConnection): void {
    for (const task of connection.unclaimed.values()) if (!this.#send(task)) this.#enqueue(task);
  }

  #takes(connection: PollConnection): boolean {
    return !connection.busy && !connection.closed && connection.unclaimed.size < MAX_UNCLAIMED;
  }

  /** Returns the connection that had received the task. */
  #forget(task: string): PollConnection | undefined {
    const receiver = this.#receivers.get(task);
    receiver?.unclaimed.delete(task);
    this.#receivers.delete(task);
    return receiver;
  }
}

const isBefore = (a: QueuePosition, b: QueuePosition) => a.timer < b.timer || (a.timer === b.timer && a.id < b.id);

function executeMessage({ id, version }: UnclaimedTask): string {
  return JSON.stringify({ kind: "execute", head: {}, data: { task: { id, version } } });
}
