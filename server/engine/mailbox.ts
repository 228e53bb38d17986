/**
 * Brings the state machine's messages to the connections they are addressed to.
 *
 * As on the real server, the news of a settled promise that nobody is there to hear is dropped. A dispatch of a task waits
 * instead, until somebody claims it: it goes to the first worker of its group that connects, and it moves on when the
 * worker that has it disconnects. The protocol allows a dispatch to be repeated or come late at any time, since a claim
 * names the version of the task and the state machine checks it; the dispatch that is repeated after 30 seconds is then rarely
 * needed.
 *
 * What waits is in the store. Here is only which connection has what, and how far through what waits each group has got:
 * however much waits, it takes no memory and nothing is read for it at a start.
 */
import { parsePollAddress } from "../wire/poll-address.ts";
import type { Connections, PollConnection } from "../wire/poll-connections.ts";
import type { Change } from "./state-machine.ts";
import type { Offer, Place, Store } from "./store.ts";

/** How many tasks one connection may have without claiming them. */
const MAX_UNCLAIMED = 10_000;
/** From how many milliseconds ahead on a task that is dispatched now has to be dispatched again before. */
const SOON = 30_000;
/** How many are read at a time of those that wait. */
const PAGE = 100;

/** Before whatever waits. */
const START: Place = { timer: 0, id: "" };

type Shelf = Map<string, Offer>;

export class Mailbox {
  readonly #connections: Connections;
  readonly #store: Store;
  /** Dispatches that a connection has got, unclaimed so far. */
  readonly #sent = new Map<PollConnection, Shelf>();
  readonly #shelfOf = new Map<string, Shelf>();
  /** Up to where what waits for a group has been gone through; undefined when nothing waits behind that. */
  readonly #through = new Map<string, Place | undefined>();

  readonly #onUnheard: (group: string) => void;

  /** `onUnheard` is told of a group for which something waits and nobody is connected. */
  constructor(connections: Connections, store: Store, onUnheard: (group: string) => void = () => {}) {
    this.#connections = connections;
    this.#store = store;
    this.#onUnheard = onUnheard;
  }

  /**
   * Delivers the messages among `changes` and forgets the dispatches of tasks that are not free any more. Returns what was
   * dispatched in their place and was not to be dispatched again soon.
   */
  deliver(changes: Change[]): string[] {
    const timers = new Map<string, number>();
    const claimed = new Set<Shelf>();
    for (const change of changes) {
      if (change.kind === "ttimeout.set") timers.set(change.timeout.id, change.timeout.timeout);
      if (change.kind !== "task.set" || change.task.state === "pending") continue;
      const shelf = this.#forget(change.task.id);
      if (shelf) claimed.add(shelf);
    }
    for (const change of changes) {
      if (change.kind !== "message.send") continue;
      const { address, message } = change;
      if (message.kind === "execute") {
        const { id, version } = message.data.task;
        const offer = { id, version, address, timer: timers.get(id) ?? START.timer };
        if (!this.#dispatch(offer)) this.#leave(offer);
      } else {
        // To a busy one only if no other will do.
        const connection = this.#connections.find(address, ({ busy }) => !busy) ?? this.#connections.find(address);
        if (connection) this.#connections.send(connection, JSON.stringify(message));
      }
    }
    return [...claimed].flatMap((shelf) => this.#restock(shelf));
  }

  /** A connection that had as much as it may have has claimed some of it: it gets more of what waits. */
  #restock(shelf: Shelf): string[] {
    if (shelf.size > MAX_UNCLAIMED - PAGE) return [];
    return [...this.#sent].flatMap(([connection, its]) =>
      its === shelf && connection.waiting.length === 0 ? this.refill(connection) : [],
    );
  }

  /** Sends an offer to whom it can go; whether there is somebody. */
  #dispatch(offer: Offer): boolean {
    this.#forget(offer.id);
    const connection = this.#connections.find(offer.address, (each) => this.#takes(each));
    if (!connection || !this.#connections.send(connection, executeMessage(offer))) return false;
    const shelf = this.#sent.get(connection) ?? new Map<string, Offer>();
    this.#sent.set(connection, shelf.set(offer.id, offer));
    this.#shelfOf.set(offer.id, shelf);
    return true;
  }

  /** Sees to it that an offer which went to nobody is come across. */
  #leave(offer: Offer): void {
    const group = parsePollAddress(offer.address)?.group;
    if (group === undefined) return;
    if (!this.#connections.isHeard(group)) this.#onUnheard(group);
    if (!this.#through.has(group)) return;
    const through = this.#through.get(group);
    if (!through || !isBefore(through, offer)) this.#through.set(group, { timer: offer.timer, id: "" });
  }

  /** Whoever has just connected may be the one that something of what waits is for. */
  connected(connection: PollConnection): void {
    this.#through.set(connection.group, START);
  }

  /**
   * Sends to `connection` what its group is waiting for, as much as it can take now. Returns those of it that were not to be
   * dispatched again soon.
   */
  refill(connection: PollConnection): string[] {
    const { group } = connection;
    const soon = Date.now() + SOON;
    const late: string[] = [];
    for (;;) {
      const through = this.#through.get(group);
      if (!through || !this.#takes(connection)) return late;
      const page = this.#store.offers(group, through, PAGE, connection.isRunner ? soon : undefined);
      for (const offer of page) {
        if (!this.#takes(connection)) return late;
        this.#through.set(group, offer);
        // One that is for another connection waits until that one is there.
        if (!this.#shelfOf.has(offer.id) && this.#dispatch(offer) && offer.timer > soon) late.push(offer.id);
      }
      if (page.length < PAGE) this.#through.set(group, undefined);
    }
  }

  /** What `connection` has got it will not claim. */
  isOfNoUse(task: string, connection: PollConnection): void {
    if (this.#shelfOf.get(task) === this.#sent.get(connection)) this.#forget(task);
  }

  /** Dispatches to others what `connection`, now closed, got and did not claim. */
  disconnected(connection: PollConnection): void {
    const shelf = this.#sent.get(connection);
    this.#sent.delete(connection);
    for (const offer of shelf?.values() ?? []) {
      if (!this.#dispatch(offer)) this.#leave(offer);
    }
  }

  #takes(connection: PollConnection): boolean {
    const unclaimed = this.#sent.get(connection)?.size ?? 0;
    return !connection.busy && !connection.closed && unclaimed < MAX_UNCLAIMED;
  }

  /** Whose it was. */
  #forget(task: string): Shelf | undefined {
    const shelf = this.#shelfOf.get(task);
    shelf?.delete(task);
    this.#shelfOf.delete(task);
    return shelf;
  }
}

const isBefore = (a: Place, b: Place) => a.timer < b.timer || (a.timer === b.timer && a.id < b.id);

function executeMessage({ id, version }: Offer): string {
  return JSON.stringify({ kind: "execute", head: {}, data: { task: { id, version } } });
}
