/** The format of promises: their tags, and how their values are encoded. */
import { fromBase64, toBase64 } from "./base64.ts";
import type { Value } from "./connection/protocol.ts";
import { rootOf } from "./ids.ts";
import { isRecord, parseExact } from "./json.ts";

// Tags of a job's promise, and of promises that belong to jobs.

/** The caller whose job it is: see `owner` of `Names`. */
export const CALLER_TAG = "durable-mcp:caller";

/** Who created the promise of a shared job: a caller's key, or the promise id of the durable function that started it. */
export const STARTER_TAG = "durable-mcp:starter";

/** The job that ends this one if it ends without a result: its promise id without the namespace. */
export const PARENT_TAG = "durable-mcp:parent";

/** The tag of a job whose kind limits how many run at once: its position among those with the same key. */
export const ORDER_TAG = "durable-mcp:order";

/** The job's quota reservation. */
export const RESERVATION_TAG = "durable-mcp:reservation";

/** The job's own retention in milliseconds, or `forever`; without it the deployment's retention applies. */
export const RETENTION_TAG = "durable-mcp:keep";

/** The id of the earlier attempt whose journal this one continues. */
export const RESUMES_TAG = "durable-mcp:earlier";

/** The id of the earlier attempt's clean-up, which this one waits for. */
export const WAITS_FOR_CLEANUP_TAG = "durable-mcp:cleaned-up";

/** The purpose of sealed addresses of callbacks, and their path. */
export const CALLBACKS_PURPOSE = "callbacks";

const INFINITY_MARK = "__INF__";
const NEGATIVE_INFINITY_MARK = "__NEG_INF__";
const TYPE_KEY = "__type";

/** Precedes a text that would otherwise be read as a mark, or as an escaped one. */
const ESCAPE = "~";
/** Matches JSON that may hold a mark, an escaped one, or what looks like one. */
const MARK_PATTERN = /INF__"|"__type"/;
const LIKE_INFINITY_PATTERN = /^~*__(?:NEG_)?INF__$/;
const LIKE_TYPE_PATTERN = /^~*(?:aggregate_)?error$/;

/**
 * Encodes a value in the format of Resonate's client libraries: base64 of JSON, in which errors and infinite numbers are
 * marked. What looks like a mark in the value is escaped, which those libraries do not know: they read `"~__INF__"` for the text
 * `"__INF__"`, and the `__type` `"~error"` for `"error"`.
 *
 * @throws {Error} for a value that JSON cannot hold: a cycle, a big integer, a property that throws
 */
export function encodeValue(value: unknown): { headers: Record<string, string>; data: string } {
  return { headers: {}, data: value === undefined ? "" : toBase64(stringify(value) ?? "") };
}

/**
 * Decodes a value that {@link encodeValue} encoded, and turns marked values back into errors and infinite numbers. Integers keep
 * their digits, as {@link parseExact} has it.
 *
 * @throws {Error} for data that is not in that format
 */
export function decodeStrictly({ data }: Value): unknown {
  if (!data) return undefined;
  return parseStored(fromBase64(data));
}

/** The value of decoded data. @throws {SyntaxError} for text that is not JSON */
export function parseStored(text: string): unknown {
  // Parsing with a reviver takes several times as long, as it is called for each value.
  return parseExact(text, MARK_PATTERN.test(text) ? (_key, value) => unmark(value) : undefined);
}

/** As {@link decodeStrictly}, but undefined for data that is not in that format: other programs may write promises. */
export function decodeValue(value: Value): unknown {
  try {
    return decodeStrictly(value);
  } catch {
    return undefined;
  }
}

/** A copy of a stored value. */
export function copyOf(value: unknown): unknown {
  const text = stringify(value);
  return text === undefined ? undefined : parseStored(text);
}

/** JSON of a value; undefined for a function or a symbol, which JSON leaves out. */
function stringify(value: unknown): string | undefined {
  try {
    const json = JSON.stringify(value);
    if (json === undefined || !(MARK_PATTERN.test(json) || needsMarks(value))) return json;
  } catch {
    // An error may hold what JSON cannot; its mark leaves that out.
  }
  return JSON.stringify(value, mark);
}

/**
 * Whether `value` may hold something to mark. It has no cycle, as `JSON.stringify` accepted it. This check is several times
 * faster than a replacer, which is called for each value.
 */
function needsMarks(value: unknown): boolean {
  if (typeof value === "number") return value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
  if (typeof value === "bigint" || typeof value === "function") return true;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) && !("toJSON" in value)) {
    for (const item of value) if (needsMarks(item)) return true;
    return false;
  }
  if (value instanceof Date) return false;
  if (value instanceof Error || "toJSON" in value) return true;
  for (const key in value) if (needsMarks((value as Record<string, unknown>)[key])) return true;
  return false;
}

function mark(this: unknown, key: string, value: unknown): unknown {
  if (value === Number.POSITIVE_INFINITY) return INFINITY_MARK;
  if (value === Number.NEGATIVE_INFINITY) return NEGATIVE_INFINITY_MARK;
  if (value instanceof Error) return new ErrorMark(value);
  if (typeof value !== "string") return value;
  const isLikeType = key === TYPE_KEY && LIKE_TYPE_PATTERN.test(value) && !(this instanceof ErrorMark);
  return isLikeType || LIKE_INFINITY_PATTERN.test(value) ? ESCAPE + value : value;
}

/** The JSON of an error. */
class ErrorMark {
  readonly [TYPE_KEY]: "error" | "aggregate_error";
  readonly message: string;
  readonly stack: string | undefined;
  readonly name: string;
  readonly errors?: readonly unknown[];
  /** Why it failed, for programs. Client libraries neither write nor read it. */
  readonly code?: string;

  constructor(error: Error & { code?: unknown }) {
    const { message, stack, name, code } = error;
    this[TYPE_KEY] = error instanceof AggregateError ? "aggregate_error" : "error";
    this.message = message;
    this.stack = stack;
    this.name = name;
    if (error instanceof AggregateError) this.errors = error.errors;
    else if (typeof code === "string") this.code = code;
  }
}

/** The value that a marked or escaped part stands for. Data that only looks marked stays as it is. */
function unmark(value: unknown): unknown {
  if (value === INFINITY_MARK) return Number.POSITIVE_INFINITY;
  if (value === NEGATIVE_INFINITY_MARK) return Number.NEGATIVE_INFINITY;
  if (typeof value === "string") return LIKE_INFINITY_PATTERN.test(value) ? value.slice(ESCAPE.length) : value;
  if (!isRecord(value)) return value;
  const { [TYPE_KEY]: type, message, errors } = value;
  if (typeof type !== "string" || !LIKE_TYPE_PATTERN.test(type)) return value;
  if (type.startsWith(ESCAPE)) return Object.assign(value, { [TYPE_KEY]: type.slice(ESCAPE.length) });
  if (type === "error") return withFields(new Error(textOr(message, "Unknown error")), value);
  return Array.isArray(errors) ? withFields(new AggregateError(errors, textOr(message, "")), value) : value;
}

const textOr = (value: unknown, instead: string): string =>
  typeof value === "string" && value !== "" ? value : instead;

function withFields(error: Error, { name, stack, code }: Record<string, unknown>): Error {
  if (typeof name === "string" && name !== "") error.name = name;
  if (typeof stack === "string" && stack !== "") error.stack = stack;
  if (typeof code === "string" && code !== "") Object.assign(error, { code });
  return error;
}

// Large results.

/** The table of contents of a result that is stored in chunks, with a range of its text. Lengths are in characters. */
export interface Parts {
  /** Distinguishes its chunks from those of other results of the job. */
  id: string;
  /** The structure of its outer objects, with the position and length of every other value in its place, as `begin+length`. */
  shape: unknown;
  /** The length of the whole. */
  characters: number;
  /** How much of it is base64 of images, sounds and files, which an answer may hold besides its text. */
  media?: number;
  /** The lengths of its first fields. */
  fields: Record<string, number>;
  /** The range, and where it begins. In a stored result it is the beginning. */
  text: string;
  offset: number;
}

/** The key under which a result holds its {@link Parts}. */
export const PARTS_KEY = "durable-mcp:parts";

/** The table of contents of a result that is stored in chunks; undefined for any other result. */
export const partsIn = (result: unknown): Parts | undefined => {
  const parts = (result as { [PARTS_KEY]?: Parts } | null | undefined)?.[PARTS_KEY];
  // A function may return another value under this key.
  const { id, text, characters } = parts ?? {};
  const isOurs = typeof id === "string" && typeof text === "string" && Number.isSafeInteger(characters);
  return isOurs && Number(characters) >= text.length ? parts : undefined;
};

// The promises of jobs.

/** The lineage tags of a promise. Its origin is the id of its job, or the part of its own id before the first separator. */
export function lineage(id: string): Record<string, string> {
  const origin = rootOf(id);
  return {
    "resonate:origin": origin,
    "resonate:branch": id,
    "resonate:parent": origin,
    "resonate:scope": "global",
  };
}

/** The call that creates a promise without a task of its own; an existing promise stays as it is. */
export function childOf(
  id: string,
  timeoutAt: number,
  { param, tags }: { param?: unknown; tags?: Record<string, string> } = {},
) {
  const data = { id, timeoutAt, param: encodeValue(param), tags: { ...lineage(id), ...tags } };
  return { kind: "promise.create" as const, data };
}

/** The call that reads a promise. */
export const getOf = (id: string) => ({ kind: "promise.get" as const, data: { id } });

/** The call that resolves a promise; one that has settled stays as it is. */
export const resolveOf = (id: string, value?: unknown) => ({
  kind: "promise.settle" as const,
  data: { id, state: "resolved" as const, value: encodeValue(value) },
});

/**
 * The function that a worker runs after a job was cancelled. It cancels the jobs that the cancelled job started and nobody else
 * wants. Then it runs the job's own function over its journal once more. The command at which that function waits throws the
 * cancellation, so that its `catch` and `finally` run. The function has a promise and a task of its own, a child of the job's
 * promise, so it completes even if workers die in the meantime.
 */
export const CLEANUP_FUNCTION = "durable-mcp:after";
