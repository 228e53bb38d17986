/** Loaded before a worker. Each SIGUSR2 switches the guard of its functions off or on again, and is logged. */
import { registerHooks } from "node:module";

type Owner = Record<string, unknown>;

/** The functions that the guard replaces, by owner and name. The original `Date` has the original `now`. */
const METHODS: [owner: object, name: string][] = [
  [globalThis, "Date"],
  [globalThis, "fetch"],
  [globalThis, "setTimeout"],
  [globalThis, "setInterval"],
  [Math, "random"],
  [crypto, "randomUUID"],
  [crypto, "getRandomValues"],
  [performance, "now"],
  [process, "hrtime"],
];
const standing = () => METHODS.map(([owner, name]) => (owner as Owner)[name]);
const originals = standing();
let guards: unknown[] | undefined;

const guardSwitch = { isOn: true };
Object.assign(globalThis, { guardSwitch });

process.on("SIGUSR2", () => {
  guards ??= standing();
  guardSwitch.isOn = !guardSwitch.isOn;
  const methods = guardSwitch.isOn ? guards : originals;
  for (const [i, [owner, name]] of METHODS.entries()) (owner as Owner)[name] = methods[i];
  const replaced = standing().filter((each, i) => each !== originals[i]).length;
  console.log(JSON.stringify({ msg: "guard switched", replaced }));
});

const switched = (guard: string) => `
import * as guard from ${JSON.stringify(guard)};
const { guardSwitch } = globalThis;
export const inside = (run, fn) => (guardSwitch.isOn ? guard.inside(run, fn) : fn());
export const outside = (fn) => (guardSwitch.isOn ? guard.outside(fn) : fn());
export const windowed = (by) => (guardSwitch.isOn ? guard.windowed(by) : undefined);
export const currentPass = () => (guardSwitch.isOn ? guard.currentPass() : undefined);
`;

registerHooks({
  load: (url, context, next) =>
    url.endsWith("/core/engine/guard/guard.ts")
      ? { format: "module", source: switched(`${url}?own`), shortCircuit: true }
      : next(url, context),
});
