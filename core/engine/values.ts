/** What can be stored of the values and errors of durable functions, so that they are seen live as a replay shows them. */
import { RuleBroken } from "../definitions/context.ts";

/** The largest result of a step or a job, in bytes of JSON. With all around it, it fits in the request that a server takes. */
export const MAX_RESULT = 1_000_000;

/** How deep a result may be nested. */
const MAX_DEPTH = 500;

/** The longest message, name and code that are kept of an error, in characters. */
const MAX_MESSAGE = 500;
const MAX_NAME = 100;

/**
 * `value` as a replay will show it: what JSON makes of it.
 *
 * @throws {RuleBroken} saying where it holds something that would come back as something else, or that it is too large
 */
export function storable(value: unknown, what: string): unknown {
  const problem = isPlain(value, 0) ? undefined : findProblem(value, "", []);
  if (problem) throw new RuleBroken(`${what} returned ${problem}`);
  const json = JSON.stringify(value);
  const bytes = json === undefined ? 0 : bytesOf(json);
  if (bytes > MAX_RESULT) {
    throw new RuleBroken(
      `${what} returned ${bytes} bytes of JSON; up to ${MAX_RESULT} are stored. Put the data where it belongs (a bucket, a database) and return its address, or return less`,
    );
  }
  return json === undefined ? undefined : JSON.parse(json);
}

/** How long a text is in UTF-8, which is looked at only where it may be too long. */
const bytesOf = (text: string): number => (text.length * 3 <= MAX_RESULT ? 0 : new TextEncoder().encode(text).length);

/** Whether all of `value` comes back as it is, as far as a quick look tells: it says nothing of where. */
function isPlain(value: unknown, depth: number): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return typeof value === "string" || typeof value === "boolean" || value === undefined;
  if (value === null) return true;
  if (depth > MAX_DEPTH) return false; // it may hold itself
  if (Array.isArray(value)) {
    for (const item of value) if (!isPlain(item, depth + 1)) return false;
    return true;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return false;
  for (const item of Object.values(value)) if (!isPlain(item, depth + 1)) return false;
  return true;
}

/** What in `value` would not come back as it is, in words, with what to return instead. */
function findProblem(value: unknown, path: string, above: object[]): string | undefined {
  const at = path === "" ? "" : ` at ${path}`;
  switch (typeof value) {
    case "bigint":
      return `a BigInt${at}: return String(value)`;
    case "function":
      return `a function${at}: return what it computes`;
    case "symbol":
      return `a symbol${at}: return a string`;
    case "number":
      return Number.isFinite(value) ? undefined : `${value}${at}: JSON has no such number, return null or a string`;
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return undefined;
  if (above.includes(value)) return `an object that holds itself${at}: return the parts that are needed`;
  if (above.length > MAX_DEPTH) return `a value nested more than ${MAX_DEPTH} deep${at}: return less`;
  const within = [...above, value];
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      const problem = findProblem(item, `${path}[${i}]`, within);
      if (problem) return problem;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `${describe(value)}${at}: ${advice(value)}`;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return `an object with toJSON${at}: return its plain form`;
  for (const [key, item] of Object.entries(value)) {
    const problem = findProblem(item, path === "" ? key : `${path}.${key}`, within);
    if (problem) return problem;
  }
  return undefined;
}

function describe(value: object): string {
  // A bundler, or a library that puts its own in the place of the platform's, numbers names.
  const name = value.constructor?.name.replace(/\$\d+$/, "");
  return name ? `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}` : "an object of a class";
}

function advice(value: object): string {
  if (value instanceof Date) return "return value.toISOString()";
  if (value instanceof Map) return "return Object.fromEntries(value)";
  if (value instanceof Set) return "return [...value]";
  if (value instanceof Error) return "throw it, or return its message";
  if (value instanceof URL) return "return value.href";
  if (typeof Response !== "undefined" && value instanceof Response)
    return "return await value.json() or await value.text()";
  if (value instanceof Promise) return "await it";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return "return it as base64 text";
  return "return a plain object of what is needed";
}

/** Of what functions returned, as it is stored: what they had returned, which they may still have. */
export const returned = new WeakMap<object, object>();

/** Where two values differ, as a path of at most 100 characters; undefined where no JSON shows that they do. */
export function difference(one: unknown, other: unknown): string | undefined {
  try {
    if (JSON.stringify(one) === JSON.stringify(other)) return undefined;
  } catch {
    // What JSON cannot hold is compared part by part.
  }
  return differenceIn(one, other, "", 0);
}

/** Where `now` has another value than `before` had, as a path. What only one of them has is no change, nor is another form of the same JSON. */
export function changed(before: unknown, now: unknown): string | undefined {
  try {
    return differenceIn(before, JSON.parse(JSON.stringify(now) ?? "null"), "", 0, true);
  } catch {
    return undefined; // what JSON cannot hold is another form
  }
}

/** `inBoth`: of what only one of them has nothing is said. */
function differenceIn(one: unknown, other: unknown, path: string, depth: number, inBoth = false): string | undefined {
  if (Object.is(one, other) || depth > MAX_DEPTH) return undefined;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return path.slice(0, 100);
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    if (inBoth && !(Object.hasOwn(one, key) && Object.hasOwn(other, key))) continue;
    const within = Array.isArray(one) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    const place = differenceIn(
      (one as Record<string, unknown>)[key],
      (other as Record<string, unknown>)[key],
      within,
      depth + 1,
      inBoth,
    );
    if (place !== undefined) return place;
  }
  return undefined;
}

/** What is kept of an error: no stack, and no more of the message than a caller should have to read. */
export interface StoredError {
  name: string;
  message: string;
  code?: string | number;
  /** How many attempts of a step had failed when it was given up, where more could have helped. */
  attempts?: number;
}

export function toStored(thrown: unknown, attempts?: number): StoredError {
  const { name, message, code } = parts(thrown);
  return {
    name,
    message: message.slice(0, MAX_MESSAGE) || "failed without giving a reason",
    ...(code !== undefined && { code }),
    ...(attempts !== undefined && { attempts }),
  };
}

/** The error as the function sees it, live as in a replay. */
export function fromStored({ name, message, code, attempts }: StoredError): Error {
  const error = new Error(message);
  if (name !== "Error") Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return Object.assign(error, code !== undefined && { code }, attempts !== undefined && { attempts });
}

function parts(thrown: unknown): { name: string; message: string; code: string | number | undefined } {
  try {
    if (thrown instanceof Error) {
      const { code } = thrown as { code?: unknown };
      const plain =
        typeof code === "string" ? code.slice(0, MAX_NAME) : Number.isFinite(code) ? (code as number) : undefined;
      return { name: String(thrown.name).slice(0, MAX_NAME), message: String(thrown.message), code: plain };
    }
    if (thrown === undefined || thrown === null) return { name: "Error", message: "", code: undefined };
    return { name: "Error", message: typeof thrown === "string" ? thrown : said(thrown), code: undefined };
  } catch {
    return { name: "Error", message: "", code: undefined }; // a getter that throws in turn
  }
}

/** What a thrown value that is no error says, without what JSON cannot hold. */
function said(thrown: unknown): string {
  const above: unknown[] = [];
  function plain(this: unknown, _key: string, value: unknown): unknown {
    if (typeof value === "bigint") return `${value}n`;
    above.splice(above.indexOf(this) + 1);
    if (above.includes(value)) return "…";
    above.push(value);
    return value;
  }
  return JSON.stringify(thrown, plain) ?? String(thrown);
}

/** Whether trying again cannot help: the error says so, or is the code's own fault. Node's network failures are a `TypeError` with a cause. */
export function isFinal(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  if (["NonRetryableError", "RuleBroken", "ProtocolFailure"].includes(thrown.name)) return true;
  if (["ReferenceError", "RangeError", "SyntaxError"].includes(thrown.name)) return true;
  return thrown.name === "TypeError" && thrown.cause === undefined;
}
