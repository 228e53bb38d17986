/** The slots of simultaneous calls: callers take turns, and if callers are authenticated, none of them can hold all slots. */
import { JobMoved } from "../host/errors.ts";

export interface Slot {
  readonly index: number;
  free(): void;
}

/** Gives the slot of this index to a call that waits. */
type Give = (index: number) => void;

export class Slots {
  readonly count: number;
  /** The maximum number of slots that one caller may hold, if callers are authenticated. */
  readonly #maxPerCaller: number;
  readonly #holders: ({ caller: string } | undefined)[];
  /** By caller, in the order of their last turns, oldest first. */
  readonly #queues = new Map<string, Set<Give>>();
  #hasCallers = false;

  constructor(count: number) {
    this.count = count;
    this.#maxPerCaller = Math.max(1, count - Math.max(1, Math.floor(count / 4)));
    this.#holders = Array.from({ length: count }, () => undefined);
  }

  /** Waits for a slot; rejects if `signal` is aborted before that. `caller` is empty if callers are not authenticated. */
  take(caller: string, signal: AbortSignal): Promise<Slot> {
    if (caller !== "") this.#hasCallers = true;
    const turn = Promise.withResolvers<Slot>();
    const queue = this.#queues.get(caller) ?? new Set();
    const giveUp = () => {
      queue.delete(give);
      turn.reject(new JobMoved());
    };
    const give: Give = (index) => {
      signal.removeEventListener("abort", giveUp);
      const holder = { caller };
      this.#holders[index] = holder;
      const free = () => {
        if (this.#holders[index] !== holder) return;
        this.#holders[index] = undefined;
        this.#next();
      };
      turn.resolve({ index, free });
    };
    if (signal.aborted) giveUp();
    else {
      signal.addEventListener("abort", giveUp, { once: true });
      this.#queues.set(caller, queue.add(give));
      this.#next();
    }
    return turn.promise;
  }

  /** Gives free slots to the callers that hold the fewest. */
  #next(): void {
    for (;;) {
      let caller: string | undefined;
      for (const [candidate, { size }] of this.#queues) {
        if (size === 0) this.#queues.delete(candidate);
        else if (caller === undefined || this.#countOf(candidate) < this.#countOf(caller)) caller = candidate;
      }
      if (caller === undefined || (this.#hasCallers && this.#countOf(caller) >= this.#maxPerCaller)) return;
      const queue = this.#queues.get(caller) ?? new Set();
      const [give] = queue;
      const index = this.#holders.indexOf(undefined);
      if (index < 0 || !give) return;
      queue.delete(give);
      // The caller is now the last to have had its turn.
      this.#queues.delete(caller);
      this.#queues.set(caller, queue);
      give(index);
    }
  }

  /** How many slots a caller holds. */
  #countOf(caller: string): number {
    return this.#holders.filter((holder) => holder?.caller === caller).length;
  }
}

/** The slot of one call. Other calls may use it while this one waits for an answer. */
export class Seat {
  readonly #take: () => Promise<Slot>;
  #slot: Slot | undefined;
  #returning: Promise<void> | undefined;
  #isOver = false;

  constructor(slot: Slot, take: () => Promise<Slot>) {
    this.#slot = slot;
    this.#take = take;
  }

  leave(): void {
    this.#slot?.free();
    this.#slot = undefined;
  }

  /** Resolves when the call may continue. */
  return(): Promise<void> {
    if (this.#slot) return Promise.resolve();
    this.#returning ??= this.#take().then((slot) => {
      this.#returning = undefined;
      if (this.#isOver) slot.free();
      else this.#slot = slot;
    });
    return this.#returning;
  }

  end(): void {
    this.#isOver = true;
    this.leave();
  }
}
