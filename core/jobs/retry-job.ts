/** How an operator retries a job that has failed or does not make progress. */
import { REQUEST_TAG } from "../author/job.ts";
import {
  decodeValue,
  encodeValue,
  getOf,
  lineage,
  ORDER_TAG,
  RESERVATION_TAG,
  RESUMES_TAG,
  resolveOf,
  WAITS_FOR_CLEANUP_TAG,
} from "../resonate/codec.ts";
import type { ResonateClient } from "../resonate/connection/client.ts";
import type { PromiseRecord, Value } from "../resonate/connection/protocol.ts";
import { chainLink, cleanUpId, executionMarkId, splitGeneration, withGeneration } from "../resonate/ids.ts";
import { last } from "../resonate/sequence.ts";
import { activityIn } from "./feed/progress-feed.ts";
import { ProgressFeeds } from "./feed/progress-feeds.ts";
import { positionIn } from "./order.ts";
import { renewedTag } from "./reservation.ts";
import { wakeupOf } from "./unhandled.ts";

const CHECKED_AGAIN = "it is checked again";
const BEING_CHECKED = "it is being checked";

interface Server {
  client: ResonateClient;
  namespace: string;
  /** Enters an attempt that is about to be started in the record of its caller. */
  enter?(attempt: PromiseRecord): Promise<void>;
}

/** The call of a job with another seed. An attempt that resumes the job takes the earlier seed from there. */
function withNewSeed(param: Value): Value {
  const call = decodeValue(param);
  return typeof call === "object" && call !== null ? encodeValue({ ...call, seed: crypto.randomUUID() }) : param;
}

/** Starts the next attempt at a job that ended without a result; resolves with the outcome in words. */
async function startAgain(
  { client, namespace, enter }: Server,
  known: PromiseRecord,
  isFromStart: boolean,
): Promise<string> {
  const { base, generation } = splitGeneration(known.id);
  const idOf = (n: number) => withGeneration(base, n);
  const get = (n: number) => client.call(getOf(idOf(n)));
  const { n, entry: newest = known } = await last(get, { after: generation, entry: known });
  if (newest.state === "resolved") return "it is complete";
  if (n !== generation) return `a newer attempt is ${newest.id.slice(namespace.length)}: name that one`;
  const id = idOf(n + 1);
  const timeoutAt = Date.now() + known.timeoutAt - known.createdAt;
  const { [REQUEST_TAG]: _request, [RESERVATION_TAG]: reservation, [RESUMES_TAG]: _earlier, ...tags } = known.tags;
  const reserved = renewedTag(reservation, Date.now());
  // Behind the jobs that have started since: these did not wait for an attempt that had ended.
  const link = chainLink(tags[ORDER_TAG] ?? "");
  const order = link && (await positionIn(link.chain, client, { id, timeoutAt }));
  const after = known.state === "rejected_canceled" && { [WAITS_FOR_CLEANUP_TAG]: cleanUpId(known.id) };
  const data = {
    id,
    timeoutAt,
    param: withNewSeed(known.param),
    tags: {
      ...tags,
      ...lineage(id),
      ...order,
      ...(!isFromStart && { [RESUMES_TAG]: known.id }),
      ...after,
      ...(reserved !== undefined && { [RESERVATION_TAG]: reserved }),
    },
  };
  await enter?.({ ...data, state: "pending", value: {}, createdAt: Date.now() });
  await client.call({ kind: "promise.create", data });
  return `it is started again as ${id.slice(namespace.length)}`;
}

/**
 * Wakes a blocked job, or starts the next attempt at a job that ended without a result: from its last good step or, with
 * `isFromStart`, from the start. Resolves with the outcome in words. `job` is the promise id without the namespace.
 */
export async function retryJob(server: Server, job: string, isFromStart = false): Promise<string> {
  const { client, namespace } = server;
  const id = namespace + job;
  const promise = await client.call(getOf(id));
  if (!promise) return "there is no such job";
  if (promise.state !== "pending") return startAgain(server, promise, isFromStart);
  const { entry } = await new ProgressFeeds(client).newest(promise);
  if (entry?.blocked === undefined)
    return `it is not blocked${entry ? `: ${activityIn(entry, Date.now()) ?? "it runs"}` : ""}`;
  const wake = async (bell: string) => {
    const found = await client.call(getOf(bell));
    if (found?.state !== "pending") return false;
    await client.call(resolveOf(bell));
    return true;
  };
  if (entry.blocked_by === "lost_workers") {
    // It sleeps until the mark of its last execution settles.
    const { status, data } = await client.send("task.get", { id }, { origin: id });
    return status === 200 && (await wake(executionMarkId(id, data.task.version))) ? CHECKED_AGAIN : BEING_CHECKED;
  }
  // The job sleeps until the end of this minute. If the minute ends right now, it may already sleep until the end of the next.
  const now = Date.now();
  for (const at of [now, now + 60_000]) {
    if (await wake(wakeupOf(id, at).id)) return CHECKED_AGAIN;
  }
  return BEING_CHECKED;
}
