/** A `Date` that a test can move, in Node and in workerd. */

/** The environment variable with the loopback port of the test's clock. */
export const CLOCK_VARIABLE = "DURABLE_TEST_CLOCK";

/** How far the time of this program is ahead of the machine's, in milliseconds. */
export let ahead = 0;

export function setAhead(ms: number): void {
  ahead = ms;
}

/** Replaces `Date` by one that is `ahead`. */
export function shiftDate(): void {
  const machine = Date;
  const { now } = Date;
  const movedNow = () => now.call(machine) + ahead;
  globalThis.Date = new Proxy(machine, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [movedNow()] : args, self),
    apply: () => new machine(movedNow()).toString(),
    get: (target, key, self) => (key === "now" ? movedNow : Reflect.get(target, key, self)),
  });
}
