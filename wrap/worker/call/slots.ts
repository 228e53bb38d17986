/** The slots of simultaneous calls: callers take turns, and if callers are told apart, none of them can hold all slots. */

export interface Slot {
  readonly index: number;
  free(): void;
}

type Take = (index: number) => void;

export class Slots {
  readonly count: number;
  /** The largest number of slots that one caller may hold, if callers are told apart. */
  readonly #most: number;
  readonly #holders: ({ caller: string } | undefined)[];
  /** By caller, in the order of their last turns, oldest first. */
  readonly #waiting = new Map<string, Set<Take>>();
  #hasCallers = false;

  constructor(count: number) {
    this.count = count;
    this.#most = Math.max(1, count - Math.max(1, Math.floor(count / 4)));
    this.#holders = Array.from({ length: count }, () => undefined);
  }

  /** Waits for a slot; rejects if `signal` is aborted before that. `caller` is empty if callers are not told apart. */
  take(caller: string, signal: AbortSignal): Promise<Slot> {
    if (caller !== "") this.#hasCallers = true;
    const taken = Promise.withResolvers<Slot>();
    const own = this.#waiting.get(caller) ?? new Set();
    const giveUp = () => {
      own.delete(take);
      taken.reject(new Error("the job is no longer run here"));
    };
    const take: Take = (index) => {
      signal.removeEventListener("abort", giveUp);
      const holder = { caller };
      this.#holders[index] = holder;
      const free = () => {
        if (this.#holders[index] !== holder) return;
        this.#holders[index] = undefined;
        this.#next();
      };
      taken.resolve({ index, free });
    };
    if (signal.aborted) giveUp();
    else {
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.set(caller, own.add(take));
      this.#next();
    }
    return taken.promise;
  }

  /** Gives free slots to the callers that hold the fewest. */
  #next(): void {
    for (;;) {
      let caller: string | undefined;
      for (const [each, { size }] of this.#waiting) {
        if (size === 0) this.#waiting.delete(each);
        else if (caller === undefined || this.#heldBy(each) < this.#heldBy(caller)) caller = each;
      }
      if (caller === undefined || (this.#hasCallers && this.#heldBy(caller) >= this.#most)) return;
      const own = this.#waiting.get(caller) ?? new Set();
      const [first] = own;
      const index = this.#holders.indexOf(undefined);
      if (index < 0 || !first) return;
      own.delete(first);
      this.#waiting.delete(caller);
      this.#waiting.set(caller, own);
      first(index);
    }
  }

  #heldBy(caller: string): number {
    return this.#holders.filter((holder) => holder?.caller === caller).length;
  }
}

/** The slot of one call. Other calls may use it while this one waits for an answer. */
export class Seat {
  readonly #take: () => Promise<Slot>;
  #slot: Slot | undefined;
  #taking: Promise<void> | undefined;
  #isOver = false;

  constructor(slot: Slot, take: () => Promise<Slot>) {
    this.#slot = slot;
    this.#take = take;
  }

  leave(): void {
    this.#slot?.free();
    this.#slot = undefined;
  }

  /** Resolves when the call may go on. */
  return(): Promise<void> {
    if (this.#slot) return Promise.resolve();
    this.#taking ??= this.#take().then((slot) => {
      this.#taking = undefined;
      if (this.#isOver) slot.free();
      else this.#slot = slot;
    });
    return this.#taking;
  }

  end(): void {
    this.#isOver = true;
    this.leave();
  }
}
