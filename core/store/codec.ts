/** How promises are written and read: their tags, and the values in them. */
import { splitKey } from "../definitions/caller.ts";
import type { Job } from "../definitions/job.ts";
import { fromBase64, toBase64 } from "./base64.ts";
import type { PromiseRecord, Value } from "./protocol.ts";

/** A job's promise: values decoded, the namespace and its caller's key taken off its id. */
export interface DurablePromise {
  /** The promise's id. */
  id: string;
  /** The job name, with its generation. */
  name: string;
  job: Job;
  /** The canonical arguments. */
  args: unknown;
  state: PromiseRecord["state"];
  /** What it was resolved with, or the reason it was rejected with. */
  value: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  settledAt: number | undefined;
  timeoutAt: number;
  /** Who created the promise of a shared job: a caller's key, or a durable function. */
  starter: string | undefined;
  /** The request that created it. */
  request: string | undefined;
  /** The places that it took of its caller's: see `quota.ts`. */
  place: string | undefined;
  /** For how long it is kept after its end, where its job says so: milliseconds, or `forever`. */
  keep: string | undefined;
  /** The version of its definition; 0 for one from before there were versions. */
  version: number;
}

/** The tag that holds a promise's {@link DurablePromise.starter}. */
export const STARTER = "durable-mcp:starter";

/** The tag that holds a promise's {@link DurablePromise.place}. */
export const PLACE = "durable-mcp:place";
/** The key of the caller for whom a job was started, by its name with the key and its promise; empty where there is none. */
export const ownerOf = (name: string, { tags }: Pick<PromiseRecord, "tags">): string =>
  splitKey(name).key || splitKey(tags[STARTER] ?? "").key;

/** The tag that holds for how many milliseconds a job that has ended is kept, or `forever`: see `keepFor` of its definition. */
export const KEEP = "durable-mcp:keep";

/** The tag of an entry of a caller's list that holds the id of the job's promise: without that job it is of no use. */
export const ENTRY = "durable-mcp:entry";

/** The tag that holds the id of the promise of the attempt before, which failed: what it had done is not done again. */
export const EARLIER = "durable-mcp:earlier";

const INFINITE = "__INF__";
const NEGATIVE_INFINITE = "__NEG_INF__";

/**
 * A value as promises hold it, in the format of Resonate's client libraries: base64 of JSON, in which errors and
 * infinite numbers are marked.
 *
 * @throws {Error} for what JSON cannot hold: a cycle, a big integer, whatever throws when it is read
 */
export function encodeValue(value: unknown): { headers: Record<string, string>; data: string } {
  return { headers: {}, data: value === undefined ? "" : toBase64(stringify(value) ?? "") };
}

/**
 * What {@link encodeValue} was given: marks are errors and infinite numbers again.
 *
 * @throws {Error} for what is not in that format
 */
export function decodeStrictly({ data }: Value): unknown {
  if (!data) return undefined;
  const text = fromBase64(data);
  // A reviver is called for each value there is, which takes several times as long as reading them.
  const isMarked = text.includes("__type") || text.includes(INFINITE) || text.includes(NEGATIVE_INFINITE);
  return isMarked ? JSON.parse(text, (_key, value) => unmark(value)) : JSON.parse(text);
}

/** A value nobody here wrote may be undecodable; it is then no value of ours. */
export function decodeValue(value: Value): unknown {
  try {
    return decodeStrictly(value);
  } catch {
    return undefined;
  }
}

/** JSON of a value; undefined for what JSON leaves out, a function or a symbol. */
function stringify(value: unknown): string | undefined {
  try {
    const json = JSON.stringify(value);
    if (!needsMarks(value)) return json;
  } catch {
    // An error may hold what JSON cannot, which its mark leaves out.
  }
  return JSON.stringify(value, (_key, part) => mark(part));
}

/**
 * Whether there may be something to mark in `value`, of which JSON has been made and so has no cycle: a replacer is
 * called for each value there is, which takes several times as long as looking.
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
  if (value === Number.POSITIVE_INFINITY) return INFINITE;
  if (value === Number.NEGATIVE_INFINITY) return NEGATIVE_INFINITE;
  if (!(value instanceof Error)) return value;
  const { message, stack, name } = value;
  if (value instanceof AggregateError) return { __type: "aggregate_error", message, stack, name, errors: value.errors };
  return { __type: "error", message, stack, name };
}

/** A JSON value that may be marked as an error. */
interface Marked {
  __type?: unknown;
  message?: string;
  stack?: string;
  name?: string;
  errors: unknown[];
}

function unmark(value: unknown): unknown {
  if (value === INFINITE) return Number.POSITIVE_INFINITY;
  if (value === NEGATIVE_INFINITE) return Number.NEGATIVE_INFINITY;
  const marked = value as Marked | null;
  if (marked?.__type === "aggregate_error") {
    return Object.assign(new AggregateError(marked.errors, marked.message), marked);
  }
  if (marked?.__type !== "error") return value;
  const error = new Error(marked.message || "Unknown error");
  if (marked.name) error.name = marked.name;
  if (marked.stack) error.stack = marked.stack;
  return error;
}

/** The tags that make a promise `id` part of what `origin` started, and one that can be listened to. */
export function lineage(origin: string, id: string): Record<string, string> {
  return {
    "resonate:origin": origin,
    "resonate:branch": id,
    "resonate:parent": origin,
    "resonate:scope": "global",
  };
}

/** The call that makes a promise `id` part of what `origin` started; one that is there stays as it is. */
export function childOf(
  origin: string,
  id: string,
  timeoutAt: number,
  { param, tags }: { param?: unknown; tags?: Record<string, string> } = {},
) {
  const data = { id, timeoutAt, param: encodeValue(param), tags: { ...lineage(origin, id), ...tags } };
  return { kind: "promise.create" as const, data };
}
