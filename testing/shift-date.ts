/** A `Date` that a test moves, in whatever runtime this is loaded: Node or workerd. */

/** How far the time of this program is ahead of the machine's, in milliseconds. */
let ahead = 0;

/** Replaces `Date`; the function returned sets how far it is ahead, in milliseconds. */
export function shiftDate(): (ms: number) => void {
  const machine = Date;
  const { now } = Date;
  const moved = () => now.call(machine) + ahead;
  globalThis.Date = new Proxy(machine, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [moved()] : args, self),
    apply: () => new machine(moved()).toString(),
    get: (target, key, self) => (key === "now" ? moved : Reflect.get(target, key, self)),
  });
  return (ms) => {
    ahead = ms;
  };
}
