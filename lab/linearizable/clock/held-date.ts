/** A `Date` that changes only when it is set, for Node and workerd. */

/** Replaces `Date.now` and `new Date()`; the returned function sets the time, in milliseconds since the epoch. */
export function holdDate(): (now: number) => void {
  const machine = Date;
  let held: number | undefined;
  const now = () => held ?? machine.now();
  globalThis.Date = new Proxy(machine, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
    get: (target, key, self) => (key === "now" ? now : Reflect.get(target, key, self)),
  });
  return (ms) => {
    held = ms;
  };
}

/** The path at which a `POST` sets the time. Its body is the time in milliseconds since the epoch. */
export const CLOCK_PATH = "/.lab/clock";
