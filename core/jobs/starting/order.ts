/**
 * The order of the jobs of a kind that have the same key, of which only so many run at once. Each start takes a place: the
 * next promise in a sequence, which names the job; a tag of the job names the place. A job that is executed for the first
 * time looks at the places before its own, and begins when fewer of their jobs are pending than may run at once; otherwise
 * it sleeps until one of those ends. A mark below a begun job lists which of them still ran, so that nobody looks further.
 */
import { hashed, type Job } from "../../definitions/job.ts";
import type { Lease } from "../../engine/runtime.ts";
import { childOf, decodeValue, ORDER } from "../../store/codec.ts";
import type { ResonateClient } from "../../store/connection/client.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { begunId, chainLink, orderId, placeTimerId } from "../../store/ids.ts";
import { append, last } from "../../store/sequence.ts";

/** How long after its place a job is created at most, in milliseconds. Later, those behind it pass. */
const GRACE = 30_000;

/** How many places in a row may be missing, since those of jobs that ended long ago are removed. */
const MISSING = 32;

/**
 * For how long the end of an order is remembered, in milliseconds, and of how many orders. Older places may be removed, but
 * none of the last day: see `BOOKKEEPING_RETENTION`.
 */
const REMEMBERED = { for: 3_600_000, most: 10_000 };

/** The newest place that was seen of each order, with the time. It holds values alone, so requests may share it. */
export type Ends = Map<string, { n: number; at: number }>;

interface Place {
  job?: string;
}

/**
 * Takes the next place for a job that is about to be created; returns the job's tag. One request where nobody else has
 * taken a place since the one that is remembered in `ends`; otherwise the end is looked for first.
 */
export async function takePlace<Args>(
  client: ResonateClient,
  namespace: string,
  { id, job, args, timeoutAt }: { id: string; job: Job<Args>; args: Args; timeoutAt: number },
  ends: Ends,
): Promise<Record<string, string>> {
  if (!job.concurrency) return {};
  const chain = orderId(namespace, job.kind, await hashed(job.concurrency.key(args)));
  const get = (n: number) => client.call({ kind: "promise.get", data: { id: chain + n } });
  const by = crypto.randomUUID();
  const create = (n: number) => client.call(childOf(chain + n, timeoutAt, { param: { job: id, by } }));
  const isDone = (entry: PromiseRecord | undefined) =>
    entry !== undefined && (decodeValue(entry.param) as { by?: unknown } | undefined)?.by === by;
  const seen = ends.get(chain);
  const now = Date.now();
  let n = seen && now - seen.at < REMEMBERED.for ? seen.n + 1 : 0;
  if (n === 0 || !isDone(await create(n))) {
    n = (await append(create, { after: (await last(get, { after: n })).n, isDone })).n;
  }
  ends.delete(chain);
  if (ends.size >= REMEMBERED.most) ends.delete(ends.keys().next().value as string);
  ends.set(chain, { n, at: now });
  return { [ORDER]: chain + n };
}

/**
 * The promises of which one has to settle before the job may begin; undefined when it may, which is marked then.
 *
 * @throws {LeaseLost}
 */
export async function aheadOf(
  { id, tags }: PromiseRecord,
  limit: number,
  lease: Lease,
  now: number,
): Promise<string[] | undefined> {
  const own = chainLink(tags[ORDER] ?? "");
  if (!own || (await lease.get(begunId(id)))) return undefined;
  const { chain, n } = own;
  const ahead = new Set<string>();
  const add = (promise: PromiseRecord | undefined) => promise?.state === "pending" && ahead.add(promise.id);
  for (let m = n - 1, missing = 0; m > 0 && ahead.size < limit && missing < MISSING; m--) {
    const place = await lease.get(chain + m);
    const job = place && (decodeValue(place.param) as Place | undefined)?.job;
    missing = place ? 0 : missing + 1;
    if (!place || job === undefined || job === id) continue;
    const until = place.createdAt + GRACE;
    const other = await lease.get(job);
    if (!other && now < until) ahead.add((await lease.create(placeTimerId(id, m), undefined, { due: until })).id);
    if (other?.tags[ORDER] !== chain + m || other.createdAt > until) continue;
    add(other);
    const begun = await lease.get(begunId(job));
    if (!begun) continue;
    for (const each of (decodeValue(begun.param) as { beside: string[] }).beside) {
      if (ahead.size < limit) add(await lease.get(each));
    }
    break;
  }
  if (ahead.size >= limit) return [...ahead];
  await lease.create(begunId(id), { beside: [...ahead] }, "resolved");
  return undefined;
}

/** Whether a job was created so long after its place that those behind it have passed: it cannot run any more. */
export async function isTooLate({ tags, createdAt }: PromiseRecord, lease: Lease): Promise<boolean> {
  const place = tags[ORDER] === undefined ? undefined : await lease.get(tags[ORDER]);
  return place !== undefined && createdAt > place.createdAt + GRACE;
}
