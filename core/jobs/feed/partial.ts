/** The partial results of a job, in the order in which it told them: each a promise of its own. */
import { decodeValue } from "../../store/codec.ts";
import { outputId } from "../../store/ids.ts";
import type { RemoteStore } from "../remote-store.ts";
import type { Partial } from "../status.ts";

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
  const partial = (more: boolean): Partial => ({
    values,
    next_offset: from + values.length,
    ...(more && { more: true as const }),
  });
  let left = limit;
  for (let n = from + 1; values.length < MOST; n += AT_ONCE) {
    const read = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => store.child(outputId(id, n + i), signal)));
    for (const promise of read) {
      if (!promise) return values.length > 0 || from > 0 ? partial(false) : undefined;
      const value = decodeValue(promise.param) ?? null;
      left -= JSON.stringify(value).length;
      if (left < 0 && values.length > 0) return partial(true);
      values.push(value);
    }
  }
  return partial(true);
}
