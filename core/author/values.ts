/** The stored form of values and errors. A function sees it in its first pass too, so that a replay shows it the same. */

import { parseExact } from "../resonate/json.ts";
import {
  type ErrorClass,
  NondeterminismError,
  NonRetryableError,
  RetryableError,
  StepInterrupted,
  TimeoutError,
} from "./context.ts";
import { framesIn, lineIn } from "./source-line.ts";

/** The largest result of a step or a job, in bytes of JSON. The request that carries it stays below servers' limits. */
export const MAX_RESULT = 1_000_000;

/** How deep a result may be nested. */
const MAX_DEPTH = 500;

/** The longest message, and the longest name and code, that are kept of an error, in characters. */
const MAX_MESSAGE = 500;
const MAX_NAME = 100;

/** The function hands over a value that cannot be stored. It may catch this and undo what it has done; its job fails nevertheless. */
export class UnstorableValue extends NondeterminismError {}

/**
 * The form of `value` that a replay will show: the value after a round trip through JSON.
 *
 * @throws {UnstorableValue} if the value is too large, or JSON would change a part of it; the message says where
 */
export function storable(value: unknown, what: string): unknown {
  const unstorable = problemIn(value, new Set());
  if (unstorable) {
    const at = unstorable.path && ` at ${unstorable.path.replace(/^\./, "")}`;
    throw new UnstorableValue(`${what} returned ${unstorable.what}${at}: ${unstorable.advice}`);
  }
  const json = JSON.stringify(value);
  if (json === undefined) return undefined;
  // A character takes up to three bytes: most texts need not be measured.
  const bytes = json.length * 3 > MAX_RESULT ? new TextEncoder().encode(json).length : 0;
  if (bytes > MAX_RESULT) {
    throw new UnstorableValue(
      `${what} returned ${bytes} bytes of JSON; up to ${MAX_RESULT} are stored. Put the data where it belongs (a bucket, a database) and return its address, or return less`,
    );
  }
  return parseExact(json);
}

/** A part of a value that would not come back from JSON unchanged. */
interface Problem {
  what: string;
  /** What to return instead. */
  advice: string;
  path: string;
}

const problem = (what: string, advice: string): Problem => ({ what, advice, path: "" });

/** JSON would turn it into null. As a property it is left out, and still reads as undefined. */
const UNDEFINED = problem("undefined in a list", "return null instead, or leave it out");

/** JSON would lose the fields. */
const LIST_WITH_FIELDS = problem(
  "a list with fields of its own, such as the groups of a RegExp match",
  "return the fields that are needed, or [...list]",
);

/** Keys that are no indexes come last. */
const hasFields = (list: readonly unknown[]): boolean => /^\D/.test(Object.keys(list).at(-1) ?? "");

/** `above` holds the objects that contain the value. */
function problemIn(value: unknown, above: Set<object>): Problem | undefined {
  switch (typeof value) {
    case "bigint":
      return problem("a BigInt", "return String(value)");
    case "function":
      return problem("a function", "return what it computes");
    case "symbol":
      return problem("a symbol", "return a string");
    case "number":
      return Number.isFinite(value)
        ? undefined
        : problem(`${value}`, "JSON has no such number, return null or a string");
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return undefined;
  if (above.has(value)) return problem("an object that holds itself", "return the parts that are needed");
  if (above.size > MAX_DEPTH) return problem(`a value nested more than ${MAX_DEPTH} deep`, "return less");
  const isList = Array.isArray(value);
  if (!isList) {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return problem(describe(value), advice(value));
    if (typeof (value as { toJSON?: unknown }).toJSON === "function")
      return problem("an object with toJSON", "return its plain form");
  }
  if (isList && hasFields(value)) return LIST_WITH_FIELDS;
  above.add(value);
  // `Object.keys` would skip an array's holes.
  const keys: Iterable<string | number> = isList ? value.keys() : Object.keys(value);
  for (const key of keys) {
    const part = (value as Record<string | number, unknown>)[key];
    const within = isList && part === undefined ? UNDEFINED : problemIn(part, above);
    if (within) return { ...within, path: (isList ? `[${key}]` : `.${key}`) + within.path };
  }
  above.delete(value);
  return undefined;
}

function describe(value: object): string {
  // Bundlers and polyfills append numbers to the names of classes.
  const name = value.constructor?.name.replace(/\$\d+$/, "");
  return name ? `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}` : "an object of a class";
}

function advice(value: object): string {
  if (value instanceof Date) return "return value.toISOString()";
  if (value instanceof Map) return "return Object.fromEntries(value)";
  if (value instanceof Set) return "return [...value]";
  if (value instanceof Error) return "throw it, or return its message";
  if (value instanceof URL) return "return value.href";
  if (Object.prototype.toString.call(value) === "[object Response]")
    return "return await value.json() or await value.text()";
  if (value instanceof Promise) return "await it";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return "return it as base64 text";
  return "return a plain object of what is needed";
}

/** Maps the stored form of a function's result to the object that the function returned, which it may still change. */
export const returnedObjects = new WeakMap<object, object>();

/** The path of the first difference between two values, up to 100 characters; undefined if their JSON is the same. */
export function difference(one: unknown, other: unknown): string | undefined {
  try {
    if (JSON.stringify(one) === JSON.stringify(other)) return undefined;
  } catch {
    // What JSON cannot hold is compared part by part.
  }
  return differenceIn(one, other, "", 0);
}

/**
 * The path at which `now` differs from `before`; undefined if nowhere. Keys that only one of them has are ignored; if `all`, only
 * those that `before` lacks.
 */
export function pathOfChange(before: unknown, now: unknown, all = false): string | undefined {
  try {
    const json = JSON.stringify(now) ?? "null";
    if (json === JSON.stringify(before)) return undefined;
    return differenceIn(before, JSON.parse(json), "", 0, all ? "first" : "both");
  } catch {
    return undefined; // JSON cannot hold it
  }
}

/** `keysOf`: which of the two must have a key for it to be compared. */
function differenceIn(
  one: unknown,
  other: unknown,
  path: string,
  depth: number,
  keysOf: "any" | "first" | "both" = "any",
): string | undefined {
  if (Object.is(one, other) || depth > MAX_DEPTH) return undefined;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return path.slice(0, 100);
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    if (keysOf !== "any" && !Object.hasOwn(one, key)) continue;
    if (keysOf === "both" && !Object.hasOwn(other, key)) continue;
    const within = Array.isArray(one) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    const part = (parent: object) => (parent as Record<string, unknown>)[key];
    const inner = differenceIn(part(one), part(other), within, depth + 1, keysOf);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** How many nested causes of an error are kept. */
const MAX_CAUSES = 3;

/** The largest fields that are kept of a registered error, in characters of JSON; larger ones are all dropped. */
const MAX_FIELDS = 10_000;

/** Fields of an error that are stored separately, or not at all. */
const SEPARATE_FIELDS = new Set(["name", "message", "stack", "cause", "code", "status", "attempts"]);

/** This package's errors that keep their class after a step, by their names, which a bundler does not change. */
const PACKAGE_ERRORS = new Map<string, ErrorClass>(
  Object.entries({ NondeterminismError, NonRetryableError, StepInterrupted, RetryableError, TimeoutError }),
);

/** An error as it is stored: without its stack, and with a message short enough for a caller to read. */
export interface StoredError {
  name: string;
  message: string;
  code?: string | number;
  status?: string | number;
  cause?: StoredError;
  /** The name of its class, if the definition registers it; `Error`, if only its name is one of this package's errors. */
  class?: string;
  /** The own fields of an error whose class is known. */
  fields?: Record<string, unknown>;
  /** How many attempts of a step had failed when it was given up; absent if the error is final or retries were off. */
  attempts?: number;
  /** The source line of a programming error: ` (at file:line)`. */
  at?: string;
}

export function toStored(
  thrown: unknown,
  attempts?: number,
  classes: readonly ErrorClass[] = [],
  depth = 0,
): StoredError {
  const { name, message, code, status, cause } = parts(thrown);
  const registeredClass = thrown instanceof Error ? classes.find((each) => thrown.constructor === each) : undefined;
  const packageError = PACKAGE_ERRORS.get(name);
  const isPackageError = packageError !== undefined && thrown instanceof packageError;
  // `AbortSignal.timeout` and other libraries have a `TimeoutError` as well.
  const type = registeredClass?.name ?? (packageError && !isPackageError ? "Error" : undefined);
  const fields = registeredClass || isPackageError ? fieldsOf(thrown) : undefined;
  return {
    name,
    message: message.slice(0, MAX_MESSAGE) || "failed without giving a reason",
    ...(code !== undefined && { code }),
    ...(status !== undefined && { status }),
    ...(cause !== undefined && depth < MAX_CAUSES && { cause: toStored(cause, undefined, classes, depth + 1) }),
    ...(type !== undefined && { class: type }),
    ...(fields && { fields }),
    ...(attempts !== undefined && { attempts }),
    ...lineOf(thrown),
  };
}

/** The stored source lines of errors: a property of the error could be one of its class. */
const lines = new WeakMap<Error, string>();

/** The source line of a programming error; for other errors the message says enough. */
function lineOf(thrown: unknown): { at?: string } {
  if (!(thrown instanceof Error)) return {};
  const at = lines.get(thrown) ?? (isFault(thrown) ? lineIn(thrown) : "");
  return at === "" ? {} : { at };
}

/** The error as the function sees it, in the first pass and in replays. */
export function fromStored(
  { name, message, code, status, cause, class: className, fields, attempts, at }: StoredError,
  classes: readonly ErrorClass[] = [],
): Error {
  const error = new Error(message, cause && { cause: fromStored(cause, classes) });
  // Most records of this package's errors have only the name.
  const type =
    classes.find((each) => each.name === className) ?? (className === "Error" ? undefined : PACKAGE_ERRORS.get(name));
  if (type) Object.setPrototypeOf(error, type.prototype);
  if (at !== undefined) lines.set(error, at);
  defineField(error, { name }, false);
  defineField(error, {
    ...fields,
    ...(code !== undefined && { code }),
    ...(status !== undefined && { status }),
    ...(attempts !== undefined && { attempts }),
  });
  return error;
}

/** Gives an error own properties. Assignments would call the accessors of its class, and fail where there is no setter. */
function defineField(error: Error, properties: Record<string, unknown>, enumerable = true): void {
  for (const [name, value] of Object.entries(properties))
    Object.defineProperty(error, name, { value, enumerable, configurable: true, writable: true });
}

/** The own fields of an error that JSON can hold; undefined if there are none, or if they are too large together. */
function fieldsOf(thrown: unknown): Record<string, unknown> | undefined {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(thrown as object)) {
    if (!SEPARATE_FIELDS.has(field) && value !== undefined && !problemIn(value, new Set())) fields[field] = value;
  }
  const json = JSON.stringify(fields);
  return json === "{}" || json.length > MAX_FIELDS ? undefined : JSON.parse(json);
}

function parts(thrown: unknown) {
  try {
    if (thrown instanceof Error) {
      const { code, status } = thrown as { code?: unknown; status?: unknown };
      const { name, message, cause } = thrown;
      return {
        name: String(name).slice(0, MAX_NAME),
        message: String(message),
        code: plain(code),
        status: plain(status),
        cause,
      };
    }
    if (thrown === undefined || thrown === null) return { name: "Error", message: "" };
    return { name: "Error", message: typeof thrown === "string" ? thrown : textOf(thrown) };
  } catch {
    return { name: "Error", message: "" }; // a getter of the thrown value has thrown
  }
}

function plain(value: unknown): string | number | undefined {
  if (typeof value === "string") return value.slice(0, MAX_NAME);
  return Number.isFinite(value) ? (value as number) : undefined;
}

/** A thrown value that is not an `Error`, as JSON without the parts that JSON cannot hold. */
function textOf(thrown: unknown): string {
  const above: unknown[] = [];
  function withoutCycles(this: unknown, _key: string, value: unknown): unknown {
    if (typeof value === "bigint") return `${value}n`;
    above.splice(above.indexOf(this) + 1);
    if (above.includes(value)) return "…";
    above.push(value);
    return value;
  }
  return JSON.stringify(thrown, withoutCycles) ?? String(thrown);
}

/**
 * A stored error in words: its message, and what network failures have in their cause alone. Of other causes only the code is
 * told, as their messages may not be meant for whom the error is.
 */
export function wordsOf({ name, message, cause }: StoredError): string {
  if (cause === undefined) return message;
  const reason = cause.code ?? (name === "TypeError" ? cause.message : undefined);
  return reason === undefined || message.includes(String(reason)) ? message : `${message} (${reason})`;
}

/** The error that a failed job stores: a short message without a stack, as everyone who may read the job sees it. */
export function storedError(thrown: unknown): Error {
  const stored = toStored(thrown);
  const { name, code, at = "" } = stored;
  const message = wordsOf(stored) + at;
  const attempts = (thrown as { attempts?: unknown } | undefined)?.attempts;
  const gaveUp = `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: `;
  const error = new Error(typeof attempts === "number" ? gaveUp + message : message);
  if (name === "ProtocolFailure" || name === "DeadlineExceeded") error.name = name;
  if (typeof code === "string") Object.assign(error, { code });
  Object.defineProperty(error, "stack", { value: undefined });
  return error;
}

/** Matches the stack of a `SyntaxError` in code that does not compile. Others come from data, such as broken JSON. */
const COMPILING_FRAME_PATTERN =
  /\bat (?:async )?(?:compileSourceTextModule|wrapSafe|new Function|new Script|new AsyncFunction)\b/;

/** The names of errors after which a retry cannot help: this package's, and that of values which do not fit their schema. */
const FINAL_ERRORS = new Set([
  "NonRetryableError",
  "StepInterrupted",
  "NondeterminismError",
  "ProtocolFailure",
  "ZodError",
]);

/** Whether a retry cannot help: the error says so, or it is a programming error. */
export function isFinal(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return FINAL_ERRORS.has(thrown.name) || isFault(thrown);
}

/** Whether it is a programming error. Node's network failures are no such error: a `TypeError` with a cause. */
function isFault(thrown: Error): boolean {
  const { name, cause } = thrown;
  if (name === "SyntaxError") return COMPILING_FRAME_PATTERN.test(framesIn(thrown));
  return ["ReferenceError", "RangeError"].includes(name) || (name === "TypeError" && cause === undefined);
}
