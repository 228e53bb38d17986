/** A `Date` that stands still, in whatever runtime this is loaded: Node or workerd. It moves when it is told to. */

/** Replaces `Date.now` and `new Date()`; the function returned sets the time, in milliseconds since the epoch. */
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

/** Where a server of this lab is told the time: a `POST` with the milliseconds since the epoch. */
export const CLOCK_PATH = "/.lab/clock";
