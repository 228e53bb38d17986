import type { Clock } from "./clock.ts";

/** Waits for whatever happens next. */
export class Wakeup {
  readonly #clock: Clock;
  /** Whether something has happened since it was last looked at what has. */
  #isAwake = true;
  #wakeUp: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isAwake(): boolean {
    return this.#isAwake;
  }

  /** It is looked at what has happened. */
  looks(): void {
    this.#isAwake = false;
  }

  /** Something has happened. */
  wake(): void {
    this.#isAwake = true;
    this.#wakeUp();
  }

  /** Resolves when something has happened since it was last looked, or at `due`. */
  async something(due: number | undefined): Promise<void> {
    if (this.#isAwake) return;
    const happened = Promise.withResolvers<void>();
    this.#wakeUp = happened.resolve;
    const callOff =
      due === undefined ? () => {} : this.#clock.after(Math.max(due - this.#clock.now(), 0), happened.resolve);
    await happened.promise;
    callOff();
    this.#wakeUp = () => {};
  }
}
