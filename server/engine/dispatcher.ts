/**
 * Sends messages to the connections that they are addressed to.
 *
 * As on the standalone server, the news of a settled promise is dropped if its address has no connection. A dispatch of a task
 * waits until a worker claims the task: it goes to the first worker of its group that connects, and to another one when that
 * worker disconnects. The protocol allows a dispatch to be repeated or late at any time, since a claim names the task's
 * version.
 *
 * The database holds the queue of unclaimed tasks. In memory are only the tasks that each connection has received and how far the
 * queue of each group has been read, so that a long queue takes no memory and a start reads nothing.
 */
import { parsePollAddress } from "./poll-address.ts";
import type { PollConnection, PollConnections } from "./poll-connections.ts";
import { type Change, promiseRecord, type StoredPromise } from "./records.ts";
import { RETRY_INTERVAL_MS } from "./state-machine.ts";
import type { QueuePosition, TaskQueue, UnclaimedTask } from "./task-queue.ts";
import { Watches } from "./watches.ts";

/** The largest number of unclaimed tasks that one connection is sent. */
const MAX_UNCLAIMED_TASKS = 10_000;
/** How many unclaimed tasks are read at a time. */
const TASKS_PER_PAGE = 100;

const QUEUE_START: QueuePosition = { timer: 0, id: "" };

export class Dispatcher {
  readonly #connections: PollConnections;
  readonly #queue: TaskQueue;
  readonly #onWorkerMissing: (group: string) => void;
  /** The connections that have received tasks, by the ids of the tasks. */
  readonly #receivers = new Map<string, PollConnection>();
  readonly #watches = new Watches();
  /** How far the queue of each group has been read; undefined if it has been read to its end. */
  readonly #readUpTo = new Map<string, QueuePosition | undefined>();

  /** `onWorkerMissing` is called with a group that has a task and no connected worker. */
  constructor(connections: PollConnections, queue: TaskQueue, onWorkerMissing: (group: string) => void) {
    this.#connections = connections;
    this.#queue = queue;
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
        const connection = this.#connections.find(address, ({ isBusy }) => !isBusy) ?? this.#connections.find(address);
        if (connection) this.#connections.send(connection, JSON.stringify(message));
      } else if (change.kind === "watch") {
        const connection = this.#connections.find(change.address);
        if (connection) this.#watches.add(change.promise, connection);
      } else if (change.kind === "promise" && change.promise.state !== "pending") this.#reportEnd(change.promise);
    }
    // A connection that had reached its limit may accept more.
    const hasRoomForPage = ({ unclaimedTasks, queue }: PollConnection) =>
      unclaimedTasks.size <= MAX_UNCLAIMED_TASKS - TASKS_PER_PAGE && queue.length === 0;
    return [...claimers].flatMap((connection) => (hasRoomForPage(connection) ? this.refill(connection) : []));
  }

  /** Reports the end of a promise to the connections that watch it. */
  #reportEnd(promise: StoredPromise): void {
    const connections = this.#watches.take(promise.id);
    if (connections.length === 0) return;
    const message = JSON.stringify({ kind: "unblock", head: {}, data: { promise: promiseRecord(promise) } });
    for (const connection of connections) this.#connections.send(connection, message);
  }

  /** Sends a task to a connection at its address; false if no connection accepts it. */
  #send(task: UnclaimedTask): boolean {
    this.#forget(task.id);
    const connection = this.#connections.find(task.address, (each) => this.#accepts(each));
    if (!connection || !this.#connections.send(connection, executeMessage(task))) return false;
    connection.unclaimedTasks.set(task.id, task);
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

  /**
   * Has the queue of the group read again from the start: some tasks may be addressed to this connection alone. A connection
   * that replaces another one takes over its watches.
   */
  onConnect(connection: PollConnection, previous: PollConnection | undefined): void {
    this.#readUpTo.set(connection.group, QUEUE_START);
    if (previous) for (const promise of this.#watches.end(previous)) this.#watches.add(promise, connection);
  }

  /** Sends `connection` as many tasks of its group's queue as it accepts. Returns those that were parked or deferred. */
  refill(connection: PollConnection): string[] {
    const { group } = connection;
    const nextRetry = Date.now() + RETRY_INTERVAL_MS;
    const parkedTasks: string[] = [];
    for (;;) {
      const position = this.#readUpTo.get(group);
      if (!position || !this.#accepts(connection)) return parkedTasks;
      const page = this.#queue.tasksOf(group, position, TASKS_PER_PAGE, connection.isRunner ? nextRetry : undefined);
      for (const task of page) {
        if (!this.#accepts(connection)) return parkedTasks;
        this.#readUpTo.set(group, task);
        // `#send` fails for a task that is addressed to another connection alone; it stays in the queue.
        if (!this.#receivers.has(task.id) && this.#send(task) && task.timer > nextRetry) parkedTasks.push(task.id);
      }
      if (page.length < TASKS_PER_PAGE) this.#readUpTo.set(group, undefined);
    }
  }

  /** Forgets a task that `connection` has received but will not claim. */
  onDecline(task: string, connection: PollConnection): void {
    if (this.#receivers.get(task) === connection) this.#forget(task);
  }

  /** Sends the unclaimed tasks of `connection`, which is closed, to other connections. */
  onDisconnect(connection: PollConnection): void {
    this.#watches.end(connection);
    for (const task of connection.unclaimedTasks.values()) if (!this.#send(task)) this.#enqueue(task);
  }

  #accepts(connection: PollConnection): boolean {
    return !connection.isBusy && !connection.isClosed && connection.unclaimedTasks.size < MAX_UNCLAIMED_TASKS;
  }

  /** Returns the connection that had received the task. */
  #forget(task: string): PollConnection | undefined {
    const receiver = this.#receivers.get(task);
    receiver?.unclaimedTasks.delete(task);
    this.#receivers.delete(task);
    return receiver;
  }
}

const isBefore = (a: QueuePosition, b: QueuePosition) => a.timer < b.timer || (a.timer === b.timer && a.id < b.id);

function executeMessage({ id, version }: UnclaimedTask): string {
  return JSON.stringify({ kind: "execute", head: {}, data: { task: { id, version } } });
}
