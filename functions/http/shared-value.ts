/**
 * A value that the requests of an isolate share, and get one at a time.
 *
 * Requests share values, never promises or connections: those are their request's own, and when its client leaves they
 * may never settle. So whoever waits for another looks, with a timer of its own, at what has been written down; and whose
 * turn it is to get the value has the turn for a while only.
 */
export interface SharedValueOptions {
  /** How long a value is good, and a failure is not tried again, in milliseconds. */
  fresh: number;
  failed: number;
  /** How long one request may take before another tries as well, in milliseconds. */
  turn: number;
}

/** Milliseconds between two looks. */
const PAUSE = 20;

export class SharedValue<Value> {
  readonly #options: SharedValueOptions;
  #value: { value: Value; at: number } | undefined;
  #failure: { error: unknown; until: number } | undefined;
  #turnUntil = 0;

  constructor(options: SharedValueOptions) {
    this.#options = options;
  }

  /**
   * The value, from `load` when there is none, or none that was got after `newerThan` (milliseconds since the epoch).
   * Throws what `load` threw, to this request or a short while ago to another.
   */
  async get(load: () => Promise<Value>, newerThan = 0): Promise<{ value: Value; at: number }> {
    for (;;) {
      const now = Date.now();
      if (this.#value && this.#value.at > newerThan && now < this.#value.at + this.#options.fresh) return this.#value;
      if (this.#failure && now < this.#failure.until) throw this.#failure.error;
      if (now >= this.#turnUntil) return this.#load(load, now);
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  async #load(load: () => Promise<Value>, now: number): Promise<{ value: Value; at: number }> {
    const turn = now + this.#options.turn;
    this.#turnUntil = turn;
    try {
      const value = { value: await load(), at: Date.now() };
      this.#value = value;
      this.#failure = undefined;
      return value;
    } catch (error) {
      this.#failure = { error, until: Date.now() + this.#options.failed };
      throw error;
    } finally {
      if (this.#turnUntil === turn) this.#turnUntil = 0;
    }
  }
}
