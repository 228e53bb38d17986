/**
 * Refuses calls that a durable function may not make outside of steps: those that read the time or a random number of the
 * process, send a request or set a timer. They are refused only in windows of the function, which the guard follows by the
 * asynchronous context: steps, other jobs and the engine are outside, and a library that the function calls is inside.
 */
import { sourceLine } from "../../author/source-line.ts";
import { builtinModule, globals, type Methods, type Target, targets, USE_DATE, USE_NOW } from "./targets.ts";

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

/** Node and workerd have `AsyncLocalStorage`; a platform without it is not guarded. */
const asyncHooks = builtinModule<{ AsyncLocalStorage: new () => Storage }>("node:async_hooks");
const passStorage = asyncHooks && new asyncHooks.AsyncLocalStorage();

/** Calls a durable function, or code that belongs to it. */
export function inside<T>(pass: GuardedPass, fn: () => T): T {
  guardAll();
  return passStorage ? passStorage.run(pass, fn) : fn();
}

/** Calls something outside of the function's code: its log, the engine. */
export const outside = <T>(fn: () => T): T => (passStorage?.getStore() ? passStorage.run(undefined, fn) : fn());

/** The pass that the current code belongs to. */
export const currentPass = (): GuardedPass | undefined => passStorage?.getStore();

function refuse(what: string, instead: string, verb = "called"): void {
  const pass = passStorage?.getStore();
  if (!pass?.isOpen) return;
  throw pass.ruleBroken(`${what} was ${verb} outside of a step${sourceLine()}. ${instead}`);
}

/** The functions that have replaced a global, so that nothing is guarded twice. */
const guards = new WeakSet<object>();
/** The methods that guarding has left in place. A test's fake clock may replace them again. */
let replacements: { owner: Methods; name: string; method: unknown }[] = [];

const isUnchanged = ({ owner, name, method }: (typeof replacements)[number]): boolean => owner[name] === method;

function guardAll(): void {
  if (replacements.length > 0 && replacements.every(isUnchanged)) return;
  guardDate();
  for (const target of targets()) guard(...target);
  guardGetters();
  syncNamedImports();
  replacements = [[globals, "Date"] as const, ...targets()].flatMap(([of, name]) => {
    const owner = of as Methods | undefined;
    return owner ? { owner, name, method: owner[name] } : [];
  });
}

/** Named imports of Node's modules are bindings of their own. In workerd, the method throws, and they stay unguarded. */
function syncNamedImports(): void {
  try {
    builtinModule<{ syncBuiltinESMExports?: () => void }>("node:module")?.syncBuiltinESMExports?.();
  } catch {}
}

/** Guards a method, if there is one that is not guarded yet. */
function guard(...[of, name, what, instead, refuses]: Target): void {
  const owner = of as Methods | undefined;
  const method = owner?.[name];
  if (!owner || typeof method !== "function" || guards.has(method)) return;
  // The modules of workerd do not change.
  if (Object.getOwnPropertyDescriptor(owner, name)?.configurable === false) return;
  const call = method as (...args: unknown[]) => unknown;
  function guardedMethod(this: unknown, ...args: unknown[]): unknown {
    if (!refuses || refuses(args)) refuse(what, instead);
    // Most calls have no arguments, and a job makes hundreds of them: `Reflect.apply` is slower.
    return args.length === 0 ? call.call(this) : Reflect.apply(call, this, args);
  }
  replace(owner, name, method, guardedMethod);
}

/** Guards what is computed when it is read. A test's fake clock that replaces it replaces methods as well. */
function guardGetters(): void {
  guardGetter(Object.getPrototypeOf(globals.performance ?? {}), "timeOrigin", (read) => {
    refuse("performance.timeOrigin", USE_NOW, "read");
    return read();
  });
  const formats = new WeakMap<object, unknown>();
  guardGetter(Intl.DateTimeFormat.prototype, "format", (read) => {
    const format = read() as (date?: unknown) => string;
    const guarded = formats.get(format) ?? guardedFormat(format);
    formats.set(format, guarded);
    return guarded;
  });
}

const guardedFormat = (format: (date?: unknown) => string) => (date?: unknown) => {
  if (date === undefined) refuse("Intl.DateTimeFormat().format()", USE_DATE);
  return format(date);
};

/** Has a property of a prototype read by `guarded`, if there is one that is not guarded yet. */
function guardGetter(owner: object, name: string, guarded: (read: () => unknown) => unknown): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  const read = descriptor?.get;
  if (!read || guards.has(read)) return;
  function get(this: unknown): unknown {
    return guarded(() => read?.call(this));
  }
  guards.add(get);
  Object.defineProperty(owner, name, { ...descriptor, get });
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
