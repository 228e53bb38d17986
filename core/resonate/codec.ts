/** The format of promises: their tags, and how their values are encoded. */
import { fromBase64, toBase64 } from "./base64.ts";
import type { Value } from "./connection/protocol.ts";
import { rootOf } from "./ids.ts";

// Tags of a job's promise, and of promises that belong to jobs.

/** The caller whose job it is: see `owner` of `Names`. */
export const CALLER_TAG = "durable-mcp:caller";

/** Who created the promise of a shared job: a caller's key, or the promise id of the durable function that started it. */
export const STARTER_TAG = "durable-mcp:starter";

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

/**
 * Encodes a value in the format of Resonate's client libraries: base64 of JSON, in which errors and infinite numbers are
 * marked.
 *
 * @throws {Error} for a value that JSON cannot hold: a cycle, a big integer, a property that throws
 */
export function encodeValue(value: unknown): { headers: Record<string, string>; data: string } {
  return { headers: {}, data: value === undefined ? "" : toBase64(stringify(value) ?? "") };
}

/**
 * Decodes a value that {@link encodeValue} encoded, and turns marked values back into errors and infinite numbers.
 *
 * @throws {Error} for data that is not in that format
 */
export function decodeStrictly({ data }: Value): unknown {
  if (!data) return undefined;
  const text = fromBase64(data);
  // Parsing with a reviver takes several times as long, as it is called for each value.
  const isMarked = text.includes("__type") || text.includes(INFINITY_MARK) || text.includes(NEGATIVE_INFINITY_MARK);
  return isMarked ? JSON.parse(text, (_key, value) => unmark(value)) : JSON.parse(text);
}

/** As {@link decodeStrictly}, but undefined for data that is not in that format: other programs may write promises. */
export function decodeValue(value: Value): unknown {
  try {
    return decodeStrictly(value);
  } catch {
    return undefined;
  }
}

/** JSON of a value; undefined for a function or a symbol, which JSON leaves out. */
function stringify(value: unknown): string | undefined {
  try {
    const json = JSON.stringify(value);
    if (!needsMarks(value)) return json;
  } catch {
    // An error may hold what JSON cannot; its mark leaves that out.
  }
  return JSON.stringify(value, (_key, part) => mark(part));
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

function mark(value: unknown): unknown {
  if (value === Number.POSITIVE_INFINITY) return INFINITY_MARK;
  if (value === Number.NEGATIVE_INFINITY) return NEGATIVE_INFINITY_MARK;
  if (!(value instanceof Error)) return value;
  const { message, stack, name, code } = value as Error & { code?: unknown };
  if (value instanceof AggregateError) return { __type: "aggregate_error", message, stack, name, errors: value.errors };
  return { __type: "error", message, stack, name, ...(typeof code === "string" && { code }) };
}

/** A JSON value that may be marked as an error. */
interface TypedValue {
  __type?: unknown;
  message?: string;
  stack?: string;
  name?: string;
  /** Why it failed, for programs. Client libraries neither write nor read it. */
  code?: string;
  errors: unknown[];
}

function unmark(value: unknown): unknown {
  if (value === INFINITY_MARK) return Number.POSITIVE_INFINITY;
  if (value === NEGATIVE_INFINITY_MARK) return Number.NEGATIVE_INFINITY;
  const marked = value as TypedValue | null;
  if (marked?.__type === "aggregate_error") {
    return Object.assign(new AggregateError(marked.errors, marked.message), marked);
  }
  if (marked?.__type !== "error") return value;
  const error = new Error(marked.message || "Unknown error");
  if (marked.name) error.name = marked.name;
  if (marked.stack) error.stack = marked.stack;
  if (marked.code) Object.assign(error, { code: marked.code });
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
