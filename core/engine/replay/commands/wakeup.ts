import type { Clock } from "../../clock.ts";

/** Wakes a loop when something has happened, also while the loop was busy. */
export class Wakeup {
  readonly #clock: Clock;
  #isAwake = true;
  /** Ends the current wait. */
  #wakeUp: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether something has happened since the last {@link reset}. */
  get isAwake(): boolean {
    return this.#isAwake;
  }

  /** Must be called before the loop looks for what has happened. */
  reset(): void {
    this.#isAwake = false;
  }

  wake(): void {
    this.#isAwake = true;
    this.#wakeUp?.();
  }

  /** Resolves when something has happened since the last {@link reset}, or at `due`. */
  async wait(due: number | undefined): Promise<void> {
    if (this.#isAwake) return;
    const woken = Promise.withResolvers<void>();
    this.#wakeUp = woken.resolve;
    const cancel =
      due === undefined ? undefined : this.#clock.after(Math.max(due - this.#clock.now(), 0), woken.resolve);
    await woken.promise;
    cancel?.();
    this.#wakeUp = undefined;
  }
}
