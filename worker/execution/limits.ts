import { LeaseLost } from "../../core/engine/execution.ts";
import type { Limit } from "../../core/engine/runtime.ts";
import type { ResonateClient } from "../../core/store/client.ts";
import { childOf, decodeValue, encodeValue } from "../../core/store/codec.ts";
import { limitId, limitSlotId } from "../../core/store/ids.ts";
import { pause } from "../../core/store/pacing/backoff.ts";
import { Turns } from "../../core/store/pacing/fair-semaphore.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";
import { last } from "../../core/store/sequence.ts";
import type { PromiseWatcher } from "../intake/promise-watch.ts";
import { reasonOf } from "./instruments.ts";

/** For how long a worker uses a place for one request after the other before it lets others have it, in milliseconds. */
const IN_A_ROW = 2_000;

/** How much longer than a request may take its place is held, in milliseconds. */
const MARGIN = 2_000;

/** For how long it is taken for known how far a chain is, in milliseconds: what is older may have been removed. */
const KNOWN = 3_600_000;

/** How soon all places are looked at again where no news comes, in milliseconds. */
const LOOK_AGAIN = 2_000;

interface Waiting {
  limit: Limit;
  /** Its turn among those of all callers: higher goes first. */
  priority: number;
  resolve(done: () => void): void;
  reject(error: unknown): void;
}

/** A numbered place: a chain of promises, of which the last is pending while a worker holds it. */
interface Slot {
  n: number;
  /** The number of the promise in the chain that is known or expected to be the last. */
  link: number;
  /** When that was known, by `performance.now()`. */
  at: number;
  /** Whether another worker is known to hold it. */
  isTaken: boolean;
  /** Until when it may be used for a further request, by `performance.now()`, and how long that may take. */
  until: number;
  time: number;
}

/**
 * How many requests all workers of a deployment have under way to one upstream. There are that many numbered places, each a
 * lease: a promise that is pending while it is held, and ends by itself when its holder has died. Whoever creates the next
 * one in its chain has the place. A place costs two requests, and is used for two seconds where many wait.
 */
export class Limits {
  readonly #client: ResonateClient;
  readonly #news: PromiseWatcher;
  readonly #namespace: string;
  readonly #patience: number;
  readonly #queues = new Map<string, Queue>();

  constructor(client: ResonateClient, news: PromiseWatcher, namespace: string, patience: number) {
    this.#client = client;
    this.#news = news;
    this.#namespace = namespace;
    this.#patience = patience;
  }

  /** Waits for a place, in turns by owner; resolves with what is called when it is done with. @throws {LeaseLost} @throws what `signal` was aborted with */
  take(limit: Limit, owner: string, signal: AbortSignal): Promise<() => void> {
    const name = limitId(this.#namespace, limit.name);
    const queue = this.#queues.get(name) ?? new Queue(name, this.#client, this.#news, this.#patience);
    this.#queues.set(name, queue);
    return queue.take(limit, owner, signal);
  }
}

class Queue {
  readonly #name: string;
  readonly #client: ResonateClient;
  readonly #news: PromiseWatcher;
  readonly #patience: number;
  readonly #waiting = new Set<Waiting>();
  readonly #turns = new Turns();
  readonly #slots: Slot[] = [];
  readonly #held = new Set<Slot>();
  /** How much further the server's clock is, in milliseconds. */
  #skew = 0;
  #isTaking = false;
  #wakeUp = Promise.withResolvers<void>();

  constructor(name: string, client: ResonateClient, news: PromiseWatcher, patience: number) {
    this.#name = name;
    this.#client = client;
    this.#news = news;
    this.#patience = patience;
  }

  take(limit: Limit, owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { limit, priority: this.#turns.next(owner), resolve, reject };
      const leave = () => {
        if (this.#waiting.delete(waiting)) reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      waiting.resolve = (done) => {
        signal.removeEventListener("abort", leave);
        resolve(done);
      };
      this.#waiting.add(waiting);
      void this.#fill();
    });
  }

  /** Gets places for those that wait. */
  async #fill(): Promise<void> {
    if (this.#isTaking) return;
    this.#isTaking = true;
    try {
      for (let next = first(this.#waiting); next; next = first(this.#waiting)) {
        const slot = await this.#find(next.limit);
        if (slot) this.#use(slot);
        else await Promise.race([this.#wakeUp.promise, pause(LOOK_AGAIN)]);
      }
    } catch (error) {
      for (const { reject } of this.#waiting) reject(new LeaseLost(reasonOf(error), { cause: error }));
      this.#waiting.clear();
    } finally {
      this.#isTaking = false;
    }
  }

  /** Hands a place that is held to the next that waits, or gives it up. */
  #use(slot: Slot): void {
    const next = first(this.#waiting);
    if (!next || next.limit.time > slot.time || performance.now() > slot.until) return void this.#leave(slot);
    this.#waiting.delete(next);
    this.#turns.begin(next.priority, () => next.resolve(() => this.#use(slot)));
  }

  async #leave(slot: Slot): Promise<void> {
    const data = { id: this.#id(slot), state: "resolved" as const, value: encodeValue(undefined) };
    // What cannot be ended now ends by itself.
    await this.#client.call({ kind: "promise.settle", data }, undefined, this.#patience).catch(() => {});
    this.#held.delete(slot);
    slot.link += 1;
    this.#wake();
    if (this.#waiting.size > 0) void this.#fill();
  }

  /** A free place; undefined when others have all that there are. */
  async #find({ most, time }: Limit): Promise<Slot | undefined> {
    this.#wakeUp = Promise.withResolvers();
    while (this.#slots.length < most) {
      this.#slots.push({ n: this.#slots.length, link: 1, at: performance.now(), isTaken: false, until: 0, time: 0 });
    }
    const free = this.#slots.slice(0, most).filter((slot) => !this.#held.has(slot));
    // From another one each time: workers that look at once seldom want the same.
    const start = Math.floor(Math.random() * free.length);
    const inTurn = [...free.slice(start), ...free.slice(0, start)];
    for (const slot of inTurn) {
      if (slot.isTaken && (await this.#isHeld(slot))) continue;
      slot.isTaken = false;
      if (await this.#create(slot, time)) return slot;
    }
    return undefined;
  }

  /** Takes a place, unless another worker holds it. */
  async #create(slot: Slot, time: number): Promise<boolean> {
    const by = crypto.randomUUID();
    if (performance.now() - slot.at > KNOWN) slot.link = 1;
    for (;;) {
      slot.at = performance.now();
      const id = this.#id(slot);
      const timeoutAt = Date.now() + this.#skew + IN_A_ROW + time + MARGIN;
      const began = performance.now();
      const record = await this.#client.call(childOf(id, id, timeoutAt, { param: { by } }), undefined, this.#patience);
      if (!record) throw new Error("places of a limit cannot be made");
      const isOurs = (decodeValue(record.param) as { by?: unknown } | undefined)?.by === by;
      if (isOurs) {
        const length = record.timeoutAt - record.createdAt;
        if (record.state === "pending" && length >= time + MARGIN) {
          slot.time = time;
          slot.until = began + Math.min(IN_A_ROW, length - time - MARGIN / 2);
          this.#held.add(slot);
          return true;
        }
        // The server's clock is ahead of this one's: what was to be held is over sooner.
        this.#skew = record.createdAt - Date.now();
        const data = { id, state: "resolved" as const, value: encodeValue(undefined) };
        await this.#client.call({ kind: "promise.settle", data }, undefined, this.#patience);
      } else if (record.state === "pending") {
        slot.isTaken = await this.#isHeld(slot);
        if (slot.isTaken) return false;
      } else await this.#skip(slot);
      slot.link += 1;
    }
  }

  /** Others have used a place: finds about how often. */
  async #skip(slot: Slot): Promise<void> {
    const get = (link: number) => this.#get(limitSlotId(this.#name, slot.n, link));
    const { n, entry } = await last(get, { after: slot.link, isLast: ({ state }) => state === "pending" });
    slot.link = entry?.state === "pending" ? n - 1 : n;
  }

  /** Whether another worker holds a place; from now on it is told when that ends. */
  async #isHeld(slot: Slot): Promise<boolean> {
    const record = await this.#news.watch(this.#id(slot), false, () => this.#wake());
    return record?.state === "pending" && record.timeoutAt > Date.now() + this.#skew;
  }

  async #get(id: string): Promise<PromiseRecord | undefined> {
    return this.#client.call({ kind: "promise.get", data: { id } }, undefined, this.#patience);
  }

  #wake(): void {
    this.#wakeUp.resolve();
  }

  #id({ n, link }: Slot): string {
    return limitSlotId(this.#name, n, link);
  }
}

/** Whose turn it is. */
function first(waiting: Iterable<Waiting>): Waiting | undefined {
  let next: Waiting | undefined;
  for (const one of waiting) if (!next || one.priority > next.priority) next = one;
  return next;
}
