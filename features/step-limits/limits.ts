import { LeaseLost, machineClock } from "../../core/engine/index.ts";
import { reasonOf } from "../../core/jobs/index.ts";
import { limitId, pause, Turns } from "../../core/resonate/index.ts";
import { type LimitHost, LimitSlot, type SlotHost } from "./limit-slot.ts";
import type { Limit, TakeLimit } from "./step.ts";

/** How soon all slots are tried again if no end of a reservation is reported, in milliseconds. */
const TRY_AGAIN_AFTER_MS = 2_000;

/**
 * Limits how many attempts all workers of a deployment make at the same time or, for a rate, begin within a span of time; for
 * example calls of one upstream service. A limit has that many slots, and a worker reserves one for each attempt. A reservation
 * costs two requests, and serves attempts for two seconds. The reservation of a rate serves one attempt, and times out by itself
 * after the span.
 */
export class Limits {
  readonly #host: LimitHost;
  readonly #queues = new Map<string, LimitQueue>();

  constructor(host: LimitHost) {
    this.#host = host;
  }

  /**
   * Waits for a slot, in turns by owner; resolves with the function that frees it.
   *
   * @throws {LeaseLost} when no slot can be reserved
   * @throws the reason that `signal` is aborted with
   */
  readonly take: TakeLimit = (limit, owner, signal) => {
    const name = limit.per === undefined ? limit.name : `${limit.name} per ${limit.per}`;
    const queue = this.#queues.get(name) ?? new LimitQueue(limitId(this.#host.namespace, name), this.#host);
    this.#queues.set(name, queue);
    return queue.take(limit, owner, signal);
  };
}

interface WaitingAttempt {
  limit: Limit;
  /** Its turn among the attempts of all callers: higher goes first. */
  priority: number;
  resolve(release: () => void): void;
  reject(error: unknown): void;
}

/** The attempts of this worker that wait for a slot of one limit. */
class LimitQueue {
  /** The prefix of the ids of its slots. */
  readonly #id: string;
  readonly #host: SlotHost;
  readonly #waiting = new Set<WaitingAttempt>();
  readonly #turns = new Turns();
  readonly #slots: LimitSlot[] = [];
  readonly #reserved = new Set<LimitSlot>();
  #isFilling = false;
  #slotFreed = Promise.withResolvers<void>();

  constructor(id: string, host: LimitHost) {
    this.#id = id;
    this.#host = { ...host, skew: 0, onFreed: () => this.#slotFreed.resolve() };
  }

  take(limit: Limit, owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = () => {
        if (this.#waiting.delete(waiting)) reject(signal.reason);
      };
      const waiting: WaitingAttempt = {
        limit,
        priority: this.#turns.next(owner),
        resolve: (release) => {
          signal.removeEventListener("abort", leave);
          resolve(release);
        },
        reject,
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(waiting);
      void this.#fill();
    });
  }

  async #fill(): Promise<void> {
    if (this.#isFilling) return;
    this.#isFilling = true;
    try {
      for (let next = this.#next(); next; next = this.#next()) {
        this.#slotFreed = Promise.withResolvers();
        const slot = await this.#reserve(next.limit);
        if (slot) this.#use(slot);
        else await Promise.race([this.#slotFreed.promise, pause(TRY_AGAIN_AFTER_MS)]);
      }
    } catch (error) {
      for (const { reject } of this.#waiting)
        reject(new LeaseLost(reasonOf(error), { reason: "unreachable", cause: error }));
      this.#waiting.clear();
    } finally {
      this.#isFilling = false;
    }
  }

  /** Gives a reserved slot to the next waiting attempt, or frees it. */
  #use(slot: LimitSlot): void {
    const next = this.#next();
    if (!next || !slot.fits(next.limit.time)) return void this.#free(slot, slot.release());
    this.#waiting.delete(next);
    const { per } = next.limit;
    const ended = per === undefined ? () => this.#use(slot) : () => {};
    if (per !== undefined) machineClock.after(per, () => void this.#free(slot, slot.noteTimeout()));
    this.#turns.began(next.priority);
    next.resolve(ended);
  }

  /** Makes a slot available again when its reservation is over. */
  async #free(slot: LimitSlot, over: Promise<void> | void): Promise<void> {
    await over;
    this.#reserved.delete(slot);
    this.#slotFreed.resolve();
    if (this.#waiting.size > 0) void this.#fill();
  }

  /** A slot for an attempt; undefined when other workers have all of them. */
  async #reserve({ limit, time, per }: Limit): Promise<LimitSlot | undefined> {
    while (this.#slots.length < limit) {
      this.#slots.push(new LimitSlot(this.#host, this.#id, this.#slots.length));
    }
    const available = this.#slots.slice(0, limit).filter((slot) => !this.#reserved.has(slot));
    // Begins with a random slot, so that workers which look at the same time seldom try the same one.
    const start = Math.floor(Math.random() * available.length);
    for (const slot of [...available.slice(start), ...available.slice(0, start)]) {
      if (!(await (per === undefined ? slot.reserve(time) : slot.reserveFor(per)))) continue;
      this.#reserved.add(slot);
      return slot;
    }
    return undefined;
  }

  /** The waiting attempt whose turn is next. */
  #next(): WaitingAttempt | undefined {
    let next: WaitingAttempt | undefined;
    for (const each of this.#waiting) if (!next || each.priority > next.priority) next = each;
    return next;
  }
}
