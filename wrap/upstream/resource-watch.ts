/** Reports changes of a wrapped server's resource. For each change a job waits at a worker, and finishes when it happens. */

import { pause } from "../../core/resonate/index.ts";
import type { CallContext } from "../../core/tools/index.ts";
import { type RequestTarget, runRequest } from "./requests.ts";

/** How long to wait for one job, in milliseconds: a little longer than the job lasts. */
const JOB_TIMEOUT_MS = 6 * 60_000;
const PAUSE_AFTER_FAILURE_MS = 10_000;
/** The changes that follow within this pause count as one. */
const PAUSE_AFTER_CHANGE_MS = 1_000;

/** Calls `onUpdated` at each change of a resource, until the context's `signal` is aborted. */
export async function watchResource(
  server: RequestTarget,
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
    const context = { store, now, until: now + JOB_TIMEOUT_MS, signal };
    const promise = await runRequest(server, "resources/subscribe", params, context, (name) => {
      job = name;
    }).catch(() => undefined);
    if (signal.aborted) {
      if (job !== undefined) await store.cancel(job).catch(() => {});
      return;
    }
    const { at } = Object(promise?.state === "resolved" ? promise.value : undefined);
    if (at === undefined) {
      await pause(PAUSE_AFTER_FAILURE_MS, signal);
      continue;
    }
    const isChanged = since !== undefined && since !== at;
    since = at;
    if (!isChanged) continue;
    onUpdated();
    await pause(PAUSE_AFTER_CHANGE_MS, signal);
  }
}
