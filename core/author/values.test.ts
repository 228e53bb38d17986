import { expect, test } from "vitest";
import * as z from "zod";
import { NondeterminismError, NonRetryableError, ProtocolFailure, RetryableError, TimeoutError } from "./context.ts";
import { difference, fromStored, isFinal, MAX_RESULT, storable, storedError, toStored } from "./values.ts";

const cycle: { self?: unknown } = {};
cycle.self = cycle;

class Money {
  amount = 1;
}

test.each<[what: string, value: unknown, words: string]>([
  ["a Date", { at: new Date(0) }, "a Date at at: return value.toISOString()"],
  ["a Map", new Map(), "a Map: return Object.fromEntries(value)"],
  ["a Set", [new Set()], "a Set at [0]: return [...value]"],
  ["an Error", { error: new TypeError("no") }, "a TypeError at error: throw it, or return its message"],
  ["a URL", new URL("https://example.org"), "a URL: return value.href"],
  ["a Response", new Response("hello"), "a Response: return await value.json() or await value.text()"],
  ["a promise", { page: Promise.resolve(1) }, "a Promise at page: await it"],
  ["bytes", { image: new Uint8Array(3) }, "a Uint8Array at image: return it as base64 text"],
  ["an instance of a class", [[new Money()]], "a Money at [0][0]: return a plain object of what is needed"],
  ["a BigInt", { total: 1n }, "a BigInt at total: return String(value)"],
  ["undefined in a list", { found: [1, undefined] }, "undefined in a list at found[1]: return null instead"],
  ["a hole in a list", new Array(1), "undefined in a list at [0]: return null instead"],
  [
    "a RegExp match with groups",
    { found: /(?<year>\d+)/.exec("in 2026") },
    "a list with fields of its own, such as the groups of a RegExp match at found: return the fields that are needed",
  ],
  ["not a number", [1, Number.NaN], "NaN at [1]: JSON has no such number, return null or a string"],
  ["infinity", Number.POSITIVE_INFINITY, "Infinity: JSON has no such number, return null or a string"],
  ["a function", { page: () => 1 }, "a function at page: return what it computes"],
  ["a symbol", Symbol("s"), "a symbol: return a string"],
  ["a cycle", { cycle }, "an object that holds itself at cycle.self: return the parts that are needed"],
  ["toJSON", { money: { toJSON: () => 1 } }, "an object with toJSON at money: return its plain form"],
])("%s is refused, and the message says what to return instead", (_what, value, words) => {
  expect(() => storable(value, 'step "a"')).toThrow(NondeterminismError);
  expect(() => storable(value, 'step "a"')).toThrow(`step "a" returned ${words}`);
});

test("a value that JSON can hold is stored as JSON, and later changes by the step do not reach it", () => {
  const value = { list: [1, null, { deep: "\ud800 __INF__" }], none: undefined, __proto__: null };
  const kept = storable(value, "it");
  expect(kept).toEqual({ list: [1, null, { deep: "\ud800 __INF__" }] });
  value.list.push(2);
  expect((kept as typeof value).list).toHaveLength(3);
  expect(storable(undefined, "it")).toBeUndefined();
  expect(storable(null, "it")).toBeNull();
  const shared = { a: 1 };
  expect(storable([shared, shared], "it")).toEqual([shared, shared]);
});

test("a result that is too large is refused, and the message has its size, the limit and advice", () => {
  const words = `returned ${MAX_RESULT + 3} bytes of JSON; up to ${MAX_RESULT} are stored. Put the data where it belongs (a bucket, a database) and return its address, or return less`;
  expect(() => storable("x".repeat(MAX_RESULT + 1), "it")).toThrow(words);
  expect(() => storable("ß".repeat(MAX_RESULT / 2), "it")).toThrow(words.replace(/\d+/, String(MAX_RESULT + 2)));
  expect(storable("x".repeat(MAX_RESULT - 2), "it")).toHaveLength(MAX_RESULT - 2);
  let deep: unknown = 1;
  for (let i = 0; i < 1_000; i++) deep = [deep];
  expect(() => storable(deep, "it")).toThrow("nested more than 500 deep");
});

test("an error, or another thrown value, comes back with its name, message and code", () => {
  const refused = Object.assign(new RangeError("out of range"), { code: "E1" });
  const back = fromStored(toStored(refused, 3)) as Error & { code?: unknown; attempts?: unknown };
  expect([back.name, back.message, back.code, back.attempts]).toEqual(["RangeError", "out of range", "E1", 3]);
  expect(String(back)).toBe("RangeError: out of range");
  expect(toStored("just words")).toEqual({ name: "Error", message: "just words" });
  expect(toStored({ status: 503 }).message).toBe('{"status":503}');
  expect(toStored(undefined).message).toBe("failed without giving a reason");
  expect(toStored(new Error("x".repeat(2_000))).message).toHaveLength(500);
  const odd = Object.assign(new Error("odd"), { name: "n".repeat(1_000), code: Number.POSITIVE_INFINITY });
  expect(toStored(odd)).toEqual({ name: "n".repeat(100), message: "odd" });
});

test("an error of this package keeps its class, and another of the same name does not get it", () => {
  const own = [new TimeoutError("late"), new NonRetryableError("no"), new RetryableError("wait", { retryAfter: 7 })];
  for (const error of own) expect(fromStored(toStored(error))).toBeInstanceOf(error.constructor);
  expect(fromStored(toStored(own[2]))).toMatchObject({ retryAfter: 7 });
  const other = fromStored(toStored(new DOMException("late", "TimeoutError")));
  expect(other).toMatchObject({ name: "TimeoutError", message: "late" });
  expect(other).not.toBeInstanceOf(TimeoutError);
  expect(fromStored(toStored(other))).not.toBeInstanceOf(TimeoutError);
});

test("an error whose record has only a name, as the engine writes it, has the class of that name", () => {
  expect(fromStored({ name: "TimeoutError", message: "late" })).toBeInstanceOf(TimeoutError);
  expect(fromStored({ name: "NonRetryableError", message: "no" })).toBeInstanceOf(NonRetryableError);
});

const refusedConnection = Object.assign(new Error("connect ECONNREFUSED 10.0.0.7:443"), { code: "ECONNREFUSED" });

test.each<[thrown: Error, message: string]>([
  [new TypeError("fetch failed", { cause: refusedConnection }), "fetch failed (ECONNREFUSED)"],
  [new TypeError("fetch failed", { cause: new Error("unknown scheme") }), "fetch failed (unknown scheme)"],
  [new Error("no answer: ECONNREFUSED", { cause: refusedConnection }), "no answer: ECONNREFUSED"],
  // Its author chose what callers see.
  [new Error("the bank is closed", { cause: new Error("card 4111 is blocked") }), "the bank is closed"],
])("the reason of a job that failed with %s says why the network failed: %s", (thrown, message) => {
  expect(storedError(thrown).message).toBe(message);
  // A step's error comes back to the function, which throws it.
  expect(storedError(fromStored(toStored(thrown))).message).toBe(message);
});

test("a programming error keeps its source line, and an error its causes", () => {
  const fault = thrownBy(() => (undefined as unknown as { y: number }).y);
  const kept = toStored(fromStored(toStored(fault)));
  expect(kept).toMatchObject({
    name: "TypeError",
    at: expect.stringMatching(/^ \(at author\/values\.test\.ts:\d+\)$/),
  });
  const reset = Object.assign(new Error("connection reset"), { code: "ECONNRESET" });
  const failed = fromStored(toStored(new Error("no answer", { cause: new Error("fetch failed", { cause: reset }) })));
  expect(failed).toMatchObject({
    message: "no answer",
    cause: { message: "fetch failed", cause: { code: "ECONNRESET" } },
  });
  expect(toStored(reset)).not.toHaveProperty("at");
  expect(toStored(Object.assign(new Error("late"), { at: "12:00" }))).not.toHaveProperty("at");
});

test("the message of a programming error, which may look like a stack and be very long, is not searched for its source line", () => {
  const other = "\n    at parse (/srv/other/parser.js:7:1)";
  const at = / \(at author\/values\.test\.ts:\d+\)/;
  expect(toStored(new TypeError(`it answered: ${other}`)).at).toMatch(at);
  const begun = performance.now();
  expect(toStored(new TypeError(" /".repeat(100_000))).at).toMatch(at);
  expect(performance.now() - begun).toBeLessThan(2_000);
});

const thrownBy = (run: () => unknown): Error => {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it throws nothing");
};
const brokenJson = () => thrownBy(() => JSON.parse("Sure! Here is the JSON: {"));
const notCompiled = () => thrownBy(() => new Function("not code"));

test("final errors are told from those that a retry may fix", () => {
  const never = [new NonRetryableError("no"), new ProtocolFailure("no"), new TypeError("x is not a function")];
  const more = [new ReferenceError("x"), new RangeError("x"), notCompiled(), new NondeterminismError("x")];
  never.push(thrownBy(() => z.string().parse(1)));
  for (const error of [...never, ...more]) expect(isFinal(error), error.name).toBe(true);
  const network = new TypeError("fetch failed", { cause: new Error("ECONNRESET") });
  const stack = thrownBy(() => JSON.parse("at new Function"));
  const broken = [network, brokenJson(), stack, new Error("503"), "words", undefined];
  for (const error of broken) expect(isFinal(error)).toBe(false);
});

test("the path of the first difference between two values is found", () => {
  expect(difference({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toBeUndefined();
  expect(difference({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] })).toBe("a[1].b");
  expect(difference({ a: 1 }, { b: 1 })).toBe("a");
  expect(difference(1, "1")).toBe("");
  expect(difference(cycle, { self: cycle })).toBeUndefined();
});

const circular: Record<string, unknown> = { name: "loop" };
circular.self = circular;
const hostile = new Error("x");
Object.defineProperty(hostile, "message", {
  get() {
    throw new Error("no message for you");
  },
});

test.each([
  ["an error", new Error("out of tea"), "out of tea"],
  ["a string", "out of tea", "out of tea"],
  ["nothing", undefined, "failed without giving a reason"],
  ["null", null, "failed without giving a reason"],
  ["an error without words", new Error(""), "failed without giving a reason"],
  ["an object that holds itself", circular, "loop"],
  ["a big integer", 10n, "10n"],
  ["an error whose message throws", hostile, "failed without giving a reason"],
])("a thrown value that is %s is stored as JSON, with a message", (_what, thrown, message) => {
  const stored = JSON.parse(JSON.stringify(toStored(thrown)));
  expect(stored.message).toContain(message);
  expect(stored).not.toHaveProperty("stack");
});
