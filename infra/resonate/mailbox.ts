/**
 * Brings the state machine's messages to the connections they are addressed to.
 *
 * As on the real server, the news of a settled promise that nobody is there to hear is dropped. A dispatch of a task is
 * kept instead, at most the latest one of each task, until somebody claims it: it goes to the first worker of its
 * group that connects, and it moves on when the worker that has it disconnects. The protocol allows a dispatch to be
 * repeated or come late at any time, since a claim names the version of the task and the state machine checks it;
 * the dispatch that the state machine itself repeats after 30 seconds is then rarely needed.
 */
import { parsePollAddress } from "./address.ts";
import type { Connections, PollConnection } from "./connections.ts";
import type { Change } from "./state-machine.ts";
import type { Dispatch } from "./store.ts";

type Shelf = Map<string, Dispatch>;

export class Mailbox {
  readonly #connections: Connections;
  /** Dispatches that nobody has got, by group. */
  readonly #held = new Map<string, Shelf>();
  /** Dispatches that a connection has got, unclaimed so far. */
  readonly #sent = new Map<PollConnection, Shelf>();
  readonly #shelfOf = new Map<string, Shelf>();

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  /** Delivers the messages among `changes` and forgets the dispatches of tasks that are not free any more. */
  deliver(changes: Change[]): void {
    for (const change of changes) {
      if (change.kind === "task.set" && change.task.state !== "pending") this.#forget(change.task.id);
      if (change.kind !== "message.send") continue;
      const { address, message } = change;
      if (message.kind === "execute") {
        this.dispatch({ ...message.data.task, address });
      } else {
        const connection = this.#connections.find(address);
        if (connection) this.#connections.send(connection, JSON.stringify(message));
      }
    }
  }

  /** Sends a dispatch, or holds it until somebody connects to whom it can go. */
  dispatch(dispatch: Dispatch): void {
    const target = parsePollAddress(dispatch.address);
    if (!target) return;
    const connection = this.#connections.find(dispatch.address);
    const sent = connection && !connection.busy && this.#connections.send(connection, executeMessage(dispatch));
    const shelf = sent ? shelfOf(this.#sent, connection) : shelfOf(this.#held, target.group);
    const before = this.#shelfOf.get(dispatch.id);
    if (before !== shelf) before?.delete(dispatch.id);
    shelf.set(dispatch.id, dispatch);
    this.#shelfOf.set(dispatch.id, shelf);
  }

  /** Sends to `connection` what its group is waiting for, as much as it can take now. */
  refill(connection: PollConnection): void {
    for (const dispatch of this.#held.get(connection.group)?.values() ?? []) {
      if (connection.busy || connection.closed) return;
      this.dispatch(dispatch);
    }
  }

  /** Dispatches to others what `connection`, now closed, got and did not claim. */
  disconnected(connection: PollConnection): void {
    const shelf = this.#sent.get(connection);
    this.#sent.delete(connection);
    for (const dispatch of shelf?.values() ?? []) this.dispatch(dispatch);
  }

  #forget(task: string): void {
    this.#shelfOf.get(task)?.delete(task);
    this.#shelfOf.delete(task);
  }
}

function shelfOf<K>(shelves: Map<K, Shelf>, key: K): Shelf {
  const shelf = shelves.get(key) ?? new Map<string, Dispatch>();
  shelves.set(key, shelf);
  return shelf;
}

function executeMessage({ id, version }: Dispatch): string {
  return JSON.stringify({ kind: "execute", head: {}, data: { task: { id, version } } });
}
