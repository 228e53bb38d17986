const MINUTE_MS = 60_000;

/** Counts of the current minute, each with a limit. */
export class MinuteLimits<Name extends string> {
  readonly #limits: Readonly<Record<Name, number>>;
  /** When the minute began, in milliseconds since the epoch. */
  #begin = 0;
  readonly #counts = new Map<Name, number>();

  constructor(limits: Readonly<Record<Name, number>>) {
    this.#limits = limits;
  }

  /** When the minute ends, in milliseconds since the epoch. */
  get end(): number {
    return this.#begin + MINUTE_MS;
  }

  /** Whether a limit of the current minute is reached. */
  isReached(name: Name): boolean {
    return Date.now() < this.end && (this.#counts.get(name) ?? 0) >= this.#limits[name];
  }

  /** Counts one more. Returns false if the limit is reached. */
  take(name: Name): boolean {
    if (Date.now() >= this.end) {
      this.#begin = Date.now();
      this.#counts.clear();
    }
    if (this.isReached(name)) return false;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    return true;
  }
}
