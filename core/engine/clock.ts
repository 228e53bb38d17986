/** The time and the event loop that executions use: those of the machine, or simulated ones that a test moves. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `then` after `ms` milliseconds, which may exceed the limit of `setTimeout`. The returned function cancels it. */
  after(ms: number, then: () => void): () => void;
  /** Resolves in the next turn of the event loop. */
  turn(): Promise<void>;
}

/** The longest time-out that `setTimeout` accepts, in milliseconds. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export const machineClock: Clock = {
  now: () => Date.now(),
  after(ms, then) {
    if (ms > MAX_TIMER_MS) return afterLong(ms, then);
    const timer = setTimeout(then, Math.max(ms, 0));
    return () => clearTimeout(timer);
  },
  turn,
};

/** As `after`, beyond the limit of `setTimeout`: one timer follows another. */
function afterLong(ms: number, then: () => void): () => void {
  const due = Date.now() + ms;
  let cancel = () => {};
  const timer = setTimeout(() => {
    cancel = machineClock.after(due - Date.now(), then);
  }, MAX_TIMER_MS);
  return () => {
    clearTimeout(timer);
    cancel();
  };
}

const { setImmediate: immediately, process } = globalThis as {
  setImmediate?: (then: () => void) => void;
  process?: { nextTick?: (then: () => void) => void };
};

function turn(): Promise<void> {
  return new Promise((resolve) => (immediately ?? setTimeout)(() => resolve()));
}

/** Whether `nextTick` runs after all microtasks, as in Node; in workerd it is just another microtask. Measured once. */
let isTickLast: boolean | undefined;

/** Calls `then` when no microtask is left: in Node exactly then, elsewhere in the next turn of the event loop. */
export async function whenDrained(then: () => void): Promise<void> {
  // Called from within a microtask, `nextTick` runs after all microtasks; otherwise it would run before them.
  await undefined;
  isTickLast ??= await waitsForMicrotasks();
  const drained = Promise.withResolvers<void>();
  const end = () => {
    then();
    drained.resolve();
  };
  if (isTickLast) process?.nextTick?.(end);
  else void turn().then(end);
  return drained.promise;
}

async function waitsForMicrotasks(): Promise<boolean> {
  if (!process?.nextTick) return false;
  let hasElapsed = false;
  process.nextTick(() => {
    hasElapsed = true;
  });
  for (let i = 0; i < 8; i++) await undefined;
  return !hasElapsed;
}

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

const UNITS = [
  { ms: 86_400_000, one: "a day", more: "days" },
  { ms: 3_600_000, one: "an hour", more: "hours" },
  { ms: 60_000, one: "a minute", more: "minutes" },
  { ms: 1_000, one: "a second", more: "seconds" },
];

/** A time in milliseconds, in words. */
export function durationInWords(ms: number): string {
  const unit = UNITS.find((each) => ms >= each.ms);
  if (!unit) return `${Math.round(ms)} milliseconds`;
  const count = Number((ms / unit.ms).toFixed(1));
  return count === 1 ? unit.one : `${count} ${unit.more}`;
}
