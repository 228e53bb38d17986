/** The calls that a durable function may not make outside of steps, and what it writes instead. */

export const USE_NOW = "Write ctx.now(), which gives the same time when the function runs again";
export const USE_DATE = `${USE_NOW}: format(ctx.now())`;
const USE_RANDOM = "Write ctx.random() or ctx.uuid(), which give the same when the function runs again, or use a step";
const USE_UUID = "Write ctx.uuid(), which gives the same when the function runs again";
const USE_STEP =
  'It would be sent again in each replay. Write await ctx.step("fetch", ({ signal }) => fetch(url, { signal }))';
const USE_REQUEST = 'It would be sent again in each replay. Write await ctx.step("request", () => …)';
const USE_SLEEP = 'Write await ctx.sleep("a while", ms); a step may use timers';
const USE_TIMEOUT = "Write await ctx.timeout(ms, async (ctx) => …); a step may use timers";
const USE_UNTIL = 'Write await ctx.until("done", { every: ms }, () => …); a step may use timers';

export type Methods = Record<string, unknown>;
export const globals = globalThis as unknown as Methods & {
  Date: DateConstructor;
  Temporal?: { Now: unknown };
  crypto?: Methods;
  performance?: Methods;
  process?: Methods;
};

/** A module of the platform; undefined if it has none of that name. */
export function builtinModule<Module = Methods>(name: string): Module | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => Module | undefined } };
  return process?.getBuiltinModule?.(name);
}

/** The methods of `Temporal.Now` that read the time. */
const NOW_METHODS = ["instant", "plainDateISO", "plainDateTimeISO", "plainTimeISO", "zonedDateTimeISO"];

/** The functions of Node's modules that read the time or a random number, set a timer or send a request. */
const MODULE_METHODS: [module: string, names: string[], instead: string][] = [
  ["node:crypto", ["randomUUID"], USE_UUID],
  ["node:crypto", ["randomBytes", "randomInt", "randomFill", "randomFillSync"], USE_RANDOM],
  ["node:crypto", ["generateKey", "generateKeySync", "generateKeyPair", "generateKeyPairSync"], "Use a step"],
  ["node:crypto", ["generatePrime", "generatePrimeSync"], "Use a step"],
  ["node:os", ["uptime"], USE_NOW],
  ["node:timers", ["setTimeout", "setImmediate"], USE_SLEEP],
  ["node:timers", ["setInterval"], USE_UNTIL],
  ["node:timers/promises", ["setTimeout", "setImmediate"], USE_SLEEP],
  ["node:timers/promises", ["setInterval"], USE_UNTIL],
  ["node:http", ["request", "get"], USE_REQUEST],
  ["node:https", ["request", "get"], USE_REQUEST],
];

export type Target = [
  owner: unknown,
  name: string,
  what: string,
  instead: string,
  refuses?: (args: unknown[]) => boolean,
];

/**
 * The guarded methods, besides the constructor `Date`: the owner, the name, the call, what to write instead, and which calls are
 * refused if not all are.
 */
export const targets = (): Target[] => [
  [globals.Date, "now", "Date.now()", USE_NOW],
  [Math, "random", "Math.random()", USE_RANDOM],
  [globals.crypto, "randomUUID", "crypto.randomUUID()", USE_UUID],
  [globals.crypto, "getRandomValues", "crypto.getRandomValues()", USE_RANDOM],
  [globals.crypto?.subtle, "generateKey", "crypto.subtle.generateKey()", "Use a step"],
  [globals.performance, "now", "performance.now()", USE_NOW],
  [globals.performance, "toJSON", "performance.toJSON()", USE_NOW],
  [Intl.DateTimeFormat.prototype, "formatToParts", "Intl.DateTimeFormat().formatToParts()", USE_DATE, isWithoutDate],
  ...NOW_METHODS.map((name): Target => [globals.Temporal?.Now, name, `Temporal.Now.${name}()`, USE_NOW]),
  [globals, "fetch", "fetch", USE_STEP],
  [globals, "setTimeout", "setTimeout", USE_SLEEP],
  [globals, "setInterval", "setInterval", USE_UNTIL],
  [globals, "setImmediate", "setImmediate", USE_SLEEP],
  [globals.scheduler, "wait", "scheduler.wait()", USE_SLEEP],
  [globals.AbortSignal, "timeout", "AbortSignal.timeout()", USE_TIMEOUT],
  [globals.process?.hrtime, "bigint", "process.hrtime.bigint()", USE_NOW],
  [globals.process, "hrtime", "process.hrtime()", USE_NOW],
  [globals.process, "uptime", "process.uptime()", USE_NOW],
  ...MODULE_METHODS.flatMap(([module, names, instead]) => {
    const owner = builtinModule(module);
    return names.map((name): Target => [owner, name, `${name}() of ${module}`, instead]);
  }),
  [builtinModule("node:timers/promises")?.scheduler, "wait", "scheduler.wait()", USE_SLEEP],
];

/** Without a date, one is formatted: the present. */
const isWithoutDate = ([date]: unknown[]): boolean => date === undefined;
