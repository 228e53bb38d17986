/**
 * Refuses what a durable function may not do outside of steps: read the time or a random number of its process, send a
 * request, set a timer. It is refused in the windows of the function alone, which it follows by its asynchronous context:
 * steps, other jobs and the engine are outside, and a library that the function calls is inside.
 */
import { placeOf } from "./place.ts";

/** The run of a durable function, as far as the guard knows it. */
export interface Guarded {
  /** Whether the function runs now. */
  readonly isOpen: boolean;
  /** Whether the job is held to rules that jobs of earlier releases were not started under. */
  readonly isStrict: boolean;
  /** The function breaks a rule; returns what to throw. */
  breaks(words: string): Error;
  unhandled(reason: unknown): void;
}

interface Storage {
  run<T>(store: Guarded | undefined, fn: () => T): T;
  getStore(): Guarded | undefined;
}

type Builtin = (name: string) => { AsyncLocalStorage: new () => Storage };

/** Node and workerd have it; where nothing has, nothing is guarded. */
const builtin = (globalThis as { process?: { getBuiltinModule?: Builtin } }).process?.getBuiltinModule;
const runs = builtin && new (builtin("node:async_hooks").AsyncLocalStorage)();

/** Calls a durable function, or what belongs to it. */
export function inside<T>(run: Guarded, fn: () => T): T {
  guardAll();
  return runs ? runs.run(run, fn) : fn();
}

/** Calls something outside of the function's code: its log, the engine. */
export const outside = <T>(fn: () => T): T => (runs?.getStore() ? runs.run(undefined, fn) : fn());

/** The run that the code belongs to which runs now. */
export const currentRun = (): Guarded | undefined => runs?.getStore();

function refuse(what: string, instead: string): void {
  const run = runs?.getStore();
  if (!run?.isOpen || !run.isStrict) return;
  throw run.breaks(`${what} was called outside of a step${placeOf()}. ${instead}`);
}

const TIME = "Write ctx.now(), which gives the same time when the function runs again";
const RANDOM = "Write ctx.random() or ctx.uuid(), which give the same when the function runs again, or use a step";
const UUID = "Write ctx.uuid(), which gives the same when the function runs again";
const REQUEST =
  'It would be sent again in each replay. Write await ctx.step("fetch", ({ signal }) => fetch(url, { signal }))';
const TIMER = 'Write await ctx.sleep("a while", ms); a step may use timers';
const INTERVAL = 'Write await ctx.until("done", { every: ms }, () => …); a step may use timers';

type Methods = Record<string, unknown>;
const here = globalThis as unknown as Methods & { Date: DateConstructor };

/** What was put in the place of a global, so that nothing is guarded twice. A test's clock may replace it again. */
const guards = new WeakSet<object>();

function guardAll(): void {
  guardDate();
  const crypto = here.crypto as Methods;
  guard(Math as unknown as Methods, "random", "Math.random()", RANDOM);
  guard(crypto, "randomUUID", "crypto.randomUUID()", UUID);
  guard(crypto, "getRandomValues", "crypto.getRandomValues()", RANDOM);
  guard(here.performance as Methods, "now", "performance.now()", TIME);
  guard(here, "fetch", "fetch", REQUEST);
  guard(here, "setTimeout", "setTimeout", TIMER);
  guard(here, "setInterval", "setInterval", INTERVAL);
  const process = here.process as Methods | undefined;
  const hrtime = process && guard(process, "hrtime", "process.hrtime()", TIME);
  if (hrtime) guard(hrtime as unknown as Methods, "bigint", "process.hrtime.bigint()", TIME);
}

/** Puts a guard in the place of a method, and returns it; undefined where there is none, or it is guarded already. */
function guard(owner: Methods | undefined, name: string, what: string, instead: string): object | undefined {
  const method = owner?.[name];
  if (typeof method !== "function" || guards.has(method)) return undefined;
  const { [name]: guarded } = {
    [name](this: unknown, ...args: unknown[]): unknown {
      refuse(what, instead);
      return Reflect.apply(method, this, args);
    },
  };
  return replace(owner as Methods, name, method, guarded as object);
}

/** `new Date(value)` is the same each time. */
function guardDate(): void {
  const original = here.Date;
  if (guards.has(original)) return;
  function GuardedDate(this: unknown, ...args: []): unknown {
    if (!new.target || args.length === 0) refuse(new.target ? "new Date()" : "Date()", `${TIME}: new Date(ctx.now())`);
    if (!new.target) return original();
    return Reflect.construct(original, args, new.target === GuardedDate ? original : new.target);
  }
  const now = { ...Object.getOwnPropertyDescriptor(original, "now"), value: original.now, writable: true };
  replace(here, "Date", original, GuardedDate);
  Object.defineProperty(original.prototype, "constructor", { value: GuardedDate, configurable: true, writable: true });
  // A separate object: code that holds the unguarded one is not affected.
  Object.defineProperty(GuardedDate, "now", now);
  guard(GuardedDate as unknown as Methods, "now", "Date.now()", TIME);
}

function replace(owner: Methods, name: string, original: object, guarded: object): object {
  // Its name, and what others have attached to it.
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  guards.add(guarded);
  const { enumerable = false } = Object.getOwnPropertyDescriptor(owner, name) ?? {};
  Object.defineProperty(owner, name, { value: guarded, configurable: true, writable: true, enumerable });
  return guarded;
}
