interface SharedValueOptions {
  /** How long a value is good, and how long a failure is not tried again, in milliseconds. */
  freshForMs: number;
  failureForMs: number;
  /** How long one request may take before another tries as well, in milliseconds. */
  turnForMs: number;
}

/** The pause between two looks of a waiting request, in milliseconds. */
const POLL_INTERVAL_MS = 20;

/**
 * A value that the requests of an isolate share, loaded by one request at a time.
 *
 * In workerd requests may share values, but neither promises nor connections: those belong to one request and may never
 * settle once its client has left. A request that waits for another one therefore polls with a timer of its own, and the
 * turn to load the value expires.
 */
export class SharedValue<Value> {
  readonly #options: SharedValueOptions;
  #value: { value: Value; at: number } | undefined;
  #failure: { error: unknown; until: number } | undefined;
  #turnUntil = 0;

  constructor(options: SharedValueOptions) {
    this.#options = options;
  }

  /**
   * The value; from `load` when there is none that is fresh and was loaded after `newerThan` (milliseconds since the epoch).
   * Throws what `load` threw, for this request or a moment ago for another.
   */
  async get(load: () => Promise<Value>, newerThan = 0): Promise<{ value: Value; at: number }> {
    for (;;) {
      const now = Date.now();
      if (this.#value && this.#value.at > newerThan && now < this.#value.at + this.#options.freshForMs)
        return this.#value;
      if (this.#failure && now < this.#failure.until) throw this.#failure.error;
      if (now >= this.#turnUntil) return this.#load(load, now);
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }

  async #load(load: () => Promise<Value>, now: number): Promise<{ value: Value; at: number }> {
    const turnForMs = now + this.#options.turnForMs;
    this.#turnUntil = turnForMs;
    try {
      const value = { value: await load(), at: Date.now() };
      this.#value = value;
      this.#failure = undefined;
      return value;
    } catch (error) {
      this.#failure = { error, until: Date.now() + this.#options.failureForMs };
      throw error;
    } finally {
      if (this.#turnUntil === turnForMs) this.#turnUntil = 0;
    }
  }
}
