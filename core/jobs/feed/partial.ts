/** The partial results of a job, in the order in which it told them: each a promise of its own. */
import { EVENT } from "../../definitions/event.ts";
import { decodeValue } from "../../store/codec.ts";
import { outputId } from "../../store/ids.ts";
import type { RemoteStore } from "../remote-store.ts";
import type { Partial } from "../status.ts";

/** Whether what a job has told is an event. */
const isEvent = (value: unknown): boolean => typeof value === "object" && value !== null && EVENT in value;

/** How many are read at once, and told at most. */
const AT_ONCE = 8;
const MOST = 100;

/** Those after the first `from`, as many as fit into `limit` characters of JSON and at least one; undefined where there are none. */
export async function partialOf(
  store: Pick<RemoteStore, "child">,
  id: string,
  { from = 0, limit }: { from?: number | undefined; limit: number },
  signal?: AbortSignal,
): Promise<Partial | undefined> {
  const values: unknown[] = [];
  /** How many were read; events among them are told to those who subscribe to them. */
  let passed = 0;
  const partial = (more: boolean): Partial => ({
    values,
    next_offset: from + passed,
    ...(more && { more: true as const }),
  });
  let left = limit;
  for (let n = from + 1; values.length < MOST; n += AT_ONCE) {
    const read = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => store.child(outputId(id, n + i), signal)));
    for (const promise of read) {
      if (!promise) return values.length > 0 || from > 0 ? partial(false) : undefined;
      const value = decodeValue(promise.param) ?? null;
      if (isEvent(value)) {
        passed += 1;
        continue;
      }
      left -= JSON.stringify(value).length;
      if (left < 0 && values.length > 0) return partial(true);
      values.push(value);
      passed += 1;
    }
  }
  return partial(true);
}
