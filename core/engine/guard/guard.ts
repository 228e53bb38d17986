/**
 * Refuses calls that a durable function may not make outside of steps: those that read the time or a random number of the
 * process, send a request or set a timer. They are refused only in windows of the function, which the guard follows by the
 * asynchronous context: steps, other jobs and the engine are outside, and a library that the function calls is inside.
 */
import { sourceLine } from "../../author/source-line.ts";

/** The part of a function's pass that the guard uses. */
export interface GuardedPass {
  /** Whether the function runs now. */
  readonly isOpen: boolean;
  /** Notes that the function breaks a rule; returns the error to throw. */
  ruleBroken(message: string): Error;
  unhandledRejection(reason: unknown): void;
}

interface Storage {
  run<T>(store: GuardedPass | undefined, fn: () => T): T;
  getStore(): GuardedPass | undefined;
}

type Builtin = (name: string) => { AsyncLocalStorage: new () => Storage };

/** Node and workerd have `AsyncLocalStorage`; a platform without it is not guarded. */
const builtin = (globalThis as { process?: { getBuiltinModule?: Builtin } }).process?.getBuiltinModule;
const passStorage = builtin && new (builtin("node:async_hooks").AsyncLocalStorage)();

/** Calls a durable function, or code that belongs to it. */
export function inside<T>(pass: GuardedPass, fn: () => T): T {
  guardAll();
  return passStorage ? passStorage.run(pass, fn) : fn();
}

/** Calls something outside of the function's code: its log, the engine. */
export const outside = <T>(fn: () => T): T => (passStorage?.getStore() ? passStorage.run(undefined, fn) : fn());

/** The pass that the current code belongs to. */
export const currentPass = (): GuardedPass | undefined => passStorage?.getStore();

function refuse(what: string, instead: string): void {
  const pass = passStorage?.getStore();
  if (!pass?.isOpen) return;
  throw pass.ruleBroken(`${what} was called outside of a step${sourceLine()}. ${instead}`);
}

const USE_NOW = "Write ctx.now(), which gives the same time when the function runs again";
const USE_RANDOM = "Write ctx.random() or ctx.uuid(), which give the same when the function runs again, or use a step";
const USE_UUID = "Write ctx.uuid(), which gives the same when the function runs again";
const USE_STEP =
  'It would be sent again in each replay. Write await ctx.step("fetch", ({ signal }) => fetch(url, { signal }))';
const USE_SLEEP = 'Write await ctx.sleep("a while", ms); a step may use timers';
const USE_UNTIL = 'Write await ctx.until("done", { every: ms }, () => …); a step may use timers';

type Methods = Record<string, unknown>;
const globals = globalThis as unknown as Methods & { Date: DateConstructor; process?: Methods };

/** The guarded methods, besides the constructor `Date`: the owner, the name, the call, and what to write instead. */
const targets = (): [owner: unknown, name: string, what: string, instead: string][] => [
  [globals.Date, "now", "Date.now()", USE_NOW],
  [Math, "random", "Math.random()", USE_RANDOM],
  [globals.crypto, "randomUUID", "crypto.randomUUID()", USE_UUID],
  [globals.crypto, "getRandomValues", "crypto.getRandomValues()", USE_RANDOM],
  [globals.performance, "now", "performance.now()", USE_NOW],
  [globals, "fetch", "fetch", USE_STEP],
  [globals, "setTimeout", "setTimeout", USE_SLEEP],
  [globals, "setInterval", "setInterval", USE_UNTIL],
  [globals.process?.hrtime, "bigint", "process.hrtime.bigint()", USE_NOW],
  [globals.process, "hrtime", "process.hrtime()", USE_NOW],
];

/** The functions that have replaced a global, so that nothing is guarded twice. */
const guards = new WeakSet<object>();
/** The methods that guarding has left in place. A test's fake clock may replace them again. */
let replacements: { owner: Methods; name: string; method: unknown }[] = [];

const isUnchanged = ({ owner, name, method }: (typeof replacements)[number]): boolean => owner[name] === method;

function guardAll(): void {
  if (replacements.length > 0 && replacements.every(isUnchanged)) return;
  guardDate();
  for (const target of targets()) guard(...target);
  replacements = [[globals, "Date"] as const, ...targets()].flatMap(([of, name]) => {
    const owner = of as Methods | undefined;
    return owner ? { owner, name, method: owner[name] } : [];
  });
}

/** Guards a method, if there is one that is not guarded yet. */
function guard(of: unknown, name: string, what: string, instead: string): void {
  const owner = of as Methods | undefined;
  const method = owner?.[name];
  if (!owner || typeof method !== "function" || guards.has(method)) return;
  const call = method as (...args: unknown[]) => unknown;
  function guardedMethod(this: unknown, ...args: unknown[]): unknown {
    refuse(what, instead);
    // Most calls have no arguments, and a job makes hundreds of them: `Reflect.apply` is slower.
    return args.length === 0 ? call.call(this) : Reflect.apply(call, this, args);
  }
  replace(owner, name, method, guardedMethod);
}

/** Guards `Date`, except for `new Date(value)`, which is the same each time. */
function guardDate(): void {
  const original = globals.Date;
  if (guards.has(original)) return;
  function GuardedDate(this: unknown, ...args: []): unknown {
    if (!new.target || args.length === 0)
      refuse(new.target ? "new Date()" : "Date()", `${USE_NOW}: new Date(ctx.now())`);
    if (!new.target) return original();
    return Reflect.construct(original, args, new.target === GuardedDate ? original : new.target);
  }
  const now = { ...Object.getOwnPropertyDescriptor(original, "now"), value: original.now, writable: true };
  replace(globals, "Date", original, GuardedDate);
  Object.defineProperty(original.prototype, "constructor", { value: GuardedDate, configurable: true, writable: true });
  // The guarded `Date` has its own `now`: code that holds the original `Date` is not affected.
  Object.defineProperty(GuardedDate, "now", now);
}

function replace(owner: Methods, name: string, original: object, replacement: object): void {
  // Copies its name, and properties that others have attached to it.
  Object.defineProperties(replacement, Object.getOwnPropertyDescriptors(original));
  guards.add(replacement);
  const { enumerable = false } = Object.getOwnPropertyDescriptor(owner, name) ?? {};
  Object.defineProperty(owner, name, { value: replacement, configurable: true, writable: true, enumerable });
}
