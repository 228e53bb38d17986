/**
 * Refuses what a durable function may not do outside of steps: read the time or a random number of its process, send a
 * request, set a timer. It is refused in the windows of the function alone, which it follows by its asynchronous context:
 * steps, other jobs and the engine are outside, and a library that the function calls is inside.
 */
import { sourceLine } from "./source-line.ts";

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

/** How many functions run now. While none does, what is guarded costs a comparison. */
let windows = 0;

/** A function begins to run, or (-1) waits again. */
export function windowed(by: 1 | -1): void {
  windows += by;
}

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
  throw run.breaks(`${what} was called outside of a step${sourceLine()}. ${instead}`);
}

const TIME = "Write ctx.now(), which gives the same time when the function runs again";
const RANDOM = "Write ctx.random() or ctx.uuid(), which give the same when the function runs again, or use a step";
const UUID = "Write ctx.uuid(), which gives the same when the function runs again";
const REQUEST =
  'It would be sent again in each replay. Write await ctx.step("fetch", ({ signal }) => fetch(url, { signal }))';
const TIMER = 'Write await ctx.sleep("a while", ms); a step may use timers';
const INTERVAL = 'Write await ctx.until("done", { every: ms }, () => …); a step may use timers';

type Methods = Record<string, unknown>;
const here = globalThis as unknown as Methods & { Date: DateConstructor; process?: Methods };

/** What is guarded beside the constructor of dates: whose, its name, as it is called, and what to write instead. */
const targets = (): [owner: unknown, name: string, what: string, instead: string][] => [
  [here.Date, "now", "Date.now()", TIME],
  [Math, "random", "Math.random()", RANDOM],
  [here.crypto, "randomUUID", "crypto.randomUUID()", UUID],
  [here.crypto, "getRandomValues", "crypto.getRandomValues()", RANDOM],
  [here.performance, "now", "performance.now()", TIME],
  [here, "fetch", "fetch", REQUEST],
  [here, "setTimeout", "setTimeout", TIMER],
  [here, "setInterval", "setInterval", INTERVAL],
  [here.process?.hrtime, "bigint", "process.hrtime.bigint()", TIME],
  [here.process, "hrtime", "process.hrtime()", TIME],
];

/** What has replaced a global, so that nothing is guarded twice. */
const guards = new WeakSet<object>();
/** What stands where. A test's clock may replace it again. */
let replaced: { owner: Methods; name: string; method: unknown }[] = [];

const isUnchanged = ({ owner, name, method }: (typeof replaced)[number]): boolean => owner[name] === method;

function guardAll(): void {
  if (replaced.length > 0 && replaced.every(isUnchanged)) return;
  guardDate();
  for (const target of targets()) guard(...target);
  replaced = [[here, "Date"] as const, ...targets()].flatMap(([of, name]) => {
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
  function guarded(this: unknown, ...args: unknown[]): unknown {
    if (windows > 0) refuse(what, instead);
    // Most have no arguments, and are called some hundred times a job.
    return args.length === 0 ? call.call(this) : Reflect.apply(call, this, args);
  }
  replace(owner, name, method, guarded);
}

/** `new Date(value)` is the same each time. */
function guardDate(): void {
  const original = here.Date;
  if (guards.has(original)) return;
  function GuardedDate(this: unknown, ...args: []): unknown {
    if (windows > 0 && (!new.target || args.length === 0))
      refuse(new.target ? "new Date()" : "Date()", `${TIME}: new Date(ctx.now())`);
    if (!new.target) return original();
    return Reflect.construct(original, args, new.target === GuardedDate ? original : new.target);
  }
  const now = { ...Object.getOwnPropertyDescriptor(original, "now"), value: original.now, writable: true };
  replace(here, "Date", original, GuardedDate);
  Object.defineProperty(original.prototype, "constructor", { value: GuardedDate, configurable: true, writable: true });
  // A separate object: code that holds the unguarded one is not affected.
  Object.defineProperty(GuardedDate, "now", now);
}

function replace(owner: Methods, name: string, original: object, guarded: object): void {
  // Its name, and what others have attached to it.
  Object.defineProperties(guarded, Object.getOwnPropertyDescriptors(original));
  guards.add(guarded);
  const { enumerable = false } = Object.getOwnPropertyDescriptor(owner, name) ?? {};
  Object.defineProperty(owner, name, { value: guarded, configurable: true, writable: true, enumerable });
}
