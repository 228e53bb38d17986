/** Reads the partial results that a job emitted, in order. Each is a promise of its own. */
import { EVENT } from "../../author/event.ts";
import { decodeValue } from "../../resonate/codec.ts";
import { outputId } from "../../resonate/ids.ts";
import type { RemoteStore } from "../remote-store.ts";
import type { Partial } from "../status.ts";

const isEvent = (value: unknown): boolean => typeof value === "object" && value !== null && EVENT in value;

/** The newest partial results of a job, for people, newest first. A long one is shortened to the beginning of its JSON. */
export interface Latest {
  count: number;
  values: unknown[];
}

/** How many of the newest are shown, and how many characters of each. */
const MAX_SHOWN_RESULTS = 5;
const MAX_RESULT_CHARACTERS = 2_000;
/** How many of the newest outputs are searched for them: events may have come after them. */
const MAX_SEARCHED_OUTPUTS = 20;

/** @param emitted how many results the job's feed counts, and `events` how many events among the same promises */
export async function latestOf(
  store: Pick<RemoteStore, "child">,
  id: string,
  { emitted = 0, events = 0 }: { emitted?: number | undefined; events?: number | undefined } = {},
  signal?: AbortSignal,
): Promise<Latest | undefined> {
  if (emitted === 0) return undefined;
  const all = emitted + events;
  const last = Math.max(all - MAX_SEARCHED_OUTPUTS, 0);
  const values: unknown[] = [];
  for (let n = all; n > last && values.length < Math.min(emitted, MAX_SHOWN_RESULTS); n -= MAX_SHOWN_RESULTS) {
    const newest = Array.from({ length: Math.min(n - last, MAX_SHOWN_RESULTS) }, (_, i) =>
      store.child(outputId(id, n - i), signal),
    );
    for (const promise of await Promise.all(newest)) {
      const value = promise && (decodeValue(promise.param) ?? null);
      if (value !== undefined && !isEvent(value)) values.push(shortened(value, MAX_RESULT_CHARACTERS));
    }
  }
  return { count: emitted, values: values.slice(0, MAX_SHOWN_RESULTS) };
}

/** The value, or the first `cutTo` characters of its JSON if that has more than `max`. */
function shortened(value: unknown, max: number, cutTo = max): unknown {
  const text = JSON.stringify(value);
  return text.length > max ? `${text.slice(0, cutTo)} …` : value;
}

/** How many outputs are read at once, and about how many results and events one call passes. */
const AT_ONCE = 8;
const MAX_OUTPUTS_PER_CALL = 100;

/** Which partial results are wanted. */
export interface PartialRange {
  /** How many are known. */
  from?: number | undefined;
  /** How many characters of JSON the others may have. */
  limit: number;
  /** How many results and events are read at most. */
  maxOutputs?: number;
}

/**
 * Returns the partial results after the first `from`: as many as fit into `limit` characters of JSON, but at least one. One that
 * is more than twice as long is cut to its beginning. Undefined if the job has emitted nothing yet.
 */
export async function partialOf(
  store: Pick<RemoteStore, "child">,
  id: string,
  { from = 0, limit, maxOutputs = MAX_OUTPUTS_PER_CALL }: PartialRange,
  signal?: AbortSignal,
): Promise<Partial | undefined> {
  const values: unknown[] = [];
  /** How many promises were passed, results and events. Events go to their subscribers instead. */
  let count = 0;
  const partial = (more: boolean): Partial => ({
    values,
    next_offset: from + count,
    ...(more && { more: true as const }),
  });
  let left = limit;
  for (let n = from + 1; count < maxOutputs; n += AT_ONCE) {
    const outputs = await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, maxOutputs - count) }, (_, i) => store.child(outputId(id, n + i), signal)),
    );
    for (const promise of outputs) {
      if (!promise) return from + count > 0 ? partial(false) : undefined;
      const value = decodeValue(promise.param) ?? null;
      if (isEvent(value)) {
        count += 1;
        continue;
      }
      left -= JSON.stringify(value).length;
      if (left < 0 && values.length > 0) return partial(true);
      values.push(shortened(value, 2 * limit, limit));
      count += 1;
    }
  }
  return partial(true);
}
