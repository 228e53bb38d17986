/**
 * Brings the state machine's messages to the connections they are addressed to.
 *
 * As on the real server, the news of a settled promise that nobody is there to hear is dropped. An offer of a task is
 * kept instead, at most the latest one of each task, until somebody claims it: it goes to the first worker of its
 * group that connects, and it moves on when the worker that has it disconnects. The protocol allows an offer to be
 * repeated or come late at any time, since a claim names the version of the task and the state machine checks it;
 * the offer that the state machine itself repeats after 30 seconds is then rarely needed.
 */
import { parsePollAddress } from "./address.ts";
import type { Connection, Connections } from "./connections.ts";
import type { Change } from "./state-machine.ts";
import type { Offer } from "./store.ts";

type Shelf = Map<string, Offer>;

export class Mailbox {
  readonly #connections: Connections;
  /** Offers that nobody has got, by group. */
  readonly #held = new Map<string, Shelf>();
  /** Offers that a connection has got, unclaimed so far. */
  readonly #sent = new Map<Connection, Shelf>();
  readonly #shelfOf = new Map<string, Shelf>();

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  /** Delivers the messages among `changes` and forgets the offers of tasks that are not free any more. */
  deliver(changes: Change[]): void {
    for (const change of changes) {
      if (change.kind === "task.set" && change.task.state !== "pending") this.#forget(change.task.id);
      if (change.kind !== "message.send") continue;
      const { address, message } = change;
      if (message.kind === "execute") {
        this.offer({ ...message.data.task, address });
      } else {
        const connection = this.#connections.find(address);
        if (connection) this.#connections.send(connection, JSON.stringify(message));
      }
    }
  }

  /** Sends an offer, or holds it until somebody connects to whom it can go. */
  offer(offer: Offer): void {
    const target = parsePollAddress(offer.address);
    if (!target) return;
    const connection = this.#connections.find(offer.address);
    const sent = connection && !connection.busy && this.#connections.send(connection, executeMessage(offer));
    const shelf = sent ? shelfOf(this.#sent, connection) : shelfOf(this.#held, target.group);
    const before = this.#shelfOf.get(offer.id);
    if (before !== shelf) before?.delete(offer.id);
    shelf.set(offer.id, offer);
    this.#shelfOf.set(offer.id, shelf);
  }

  /** Sends to `connection` what its group is waiting for, as much as it can take now. */
  refill(connection: Connection): void {
    for (const offer of this.#held.get(connection.group)?.values() ?? []) {
      if (connection.busy || connection.closed) return;
      this.offer(offer);
    }
  }

  /** Offers to others what `connection`, now closed, got and did not claim. */
  disconnected(connection: Connection): void {
    const shelf = this.#sent.get(connection);
    this.#sent.delete(connection);
    for (const offer of shelf?.values() ?? []) this.offer(offer);
  }

  #forget(task: string): void {
    this.#shelfOf.get(task)?.delete(task);
    this.#shelfOf.delete(task);
  }
}

function shelfOf<K>(shelves: Map<K, Shelf>, key: K): Shelf {
  const shelf = shelves.get(key) ?? new Map<string, Offer>();
  shelves.set(key, shelf);
  return shelf;
}

function executeMessage({ id, version }: Offer): string {
  return JSON.stringify({ kind: "execute", head: {}, data: { task: { id, version } } });
}
