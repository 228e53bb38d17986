/** Reports changes of a wrapped server's resource. For each change a job waits at a worker, and ends when it happens. */

import { pause } from "../../core/resonate/pacing/backoff.ts";
import type { CallContext } from "../../core/tools/tool.ts";
import { type Asked, asked } from "./asking.ts";

/** How long to wait for one job, in milliseconds: a little longer than the job lasts. */
const PATIENCE = 6 * 60_000;
/** The pause after a failure, in milliseconds. */
const PAUSE = 10_000;
/** The pause after a change, in milliseconds. Those that follow within it count as one. */
const BETWEEN = 1_000;

/** Calls `onUpdated` at each change of a resource, until the context's `signal` is aborted. */
export async function watchResource(
  server: Asked,
  uri: string,
  { store, signal }: CallContext,
  onUpdated: () => void,
): Promise<void> {
  const stream = crypto.randomUUID();
  let since: unknown;
  for (let round = 0; !signal.aborted; round++) {
    const now = Date.now();
    const params = { uri, stream, round, ...(since !== undefined && { since }) };
    let job: string | undefined;
    const context = { store, now, until: now + PATIENCE, signal };
    const found = await asked(server, "resources/subscribe", params, context, (name) => {
      job = name;
    }).catch(() => undefined);
    if (signal.aborted) {
      if (job !== undefined) await store.cancel(job).catch(() => {});
      return;
    }
    const { at } = Object(found?.state === "resolved" ? found.value : undefined);
    if (at === undefined) {
      await pause(PAUSE, signal);
      continue;
    }
    const isChanged = since !== undefined && since !== at;
    since = at;
    if (!isChanged) continue;
    onUpdated();
    await pause(BETWEEN, signal);
  }
}
