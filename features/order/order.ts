/**
 * The order of the jobs of a kind that have the same key, when the kind limits how many of them run at once. Each start takes a
 * position: the next promise in a sequence. The position names the job, and a tag of the job names the position. Starts that
 * come at the same moment share a position, which lists them in order. A job that is executed for the first time reads the jobs
 * before it, and begins if fewer of them are pending, or clean up after a cancellation, than may run at once. Otherwise it sleeps
 * until one of those ends. When a job begins, a child of its promise (the mark) lists the promises of the earlier jobs and
 * clean-ups that were still running, so that nobody has to look further back.
 */
import type { Lease } from "../../core/engine/job-lease.ts";
import { childOf, decodeValue, getOf, ORDER } from "../../core/resonate/codec.ts";
import type { Requests } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { begunId, chainLink, cleanUpId, cleanUpTimerId, positionTimerId } from "../../core/resonate/ids.ts";
import { last } from "../../core/resonate/sequence.ts";

/** How long after its position a job may be created, in milliseconds. Later jobs do not wait longer than this for it. */
const GRACE = 30_000;

/** How long after a job's cancellation its clean-up may begin, in milliseconds. Later jobs wait for no clean-up that begins later. */
const CLEAN_UP_GRACE = 600_000;

/** How many missing positions in a row end the search backwards: positions of jobs that ended long ago are removed. */
const MISSING = 32;

/** How many starts share a position at most, as each of them sends the names of all. */
const TOGETHER = 100;

/**
 * For how long the end of an order is remembered, in milliseconds, and of how many orders. The remembered position still exists
 * then, as the server removes none that is younger than a day: see `BOOKKEEPING_RETENTION`.
 */
const REMEMBERED = { for: 3_600_000, most: 10_000 };

/** A start; `by` distinguishes it from other starts of the same job. */
interface Start {
  job: string;
  by: string;
}

/** A start that has no position yet, or has just got the `n`th; `at` is when it last tried to get one. */
interface Waiting extends Start {
  timeoutAt: number;
  at: number;
  n?: number;
}

/**
 * What the starts of a process know about an order and each other: the newest position that was seen, when that was, and the
 * starts that wait for the next one. It holds only values, so requests may share it.
 */
interface Order {
  n: number;
  at: number;
  waiting: Map<string, Waiting>;
}

export type Orders = Map<string, Order>;

/** The starts that share a position, in their order. */
function startsIn({ param }: PromiseRecord): Start[] {
  const { job, by, also = [] } = decodeValue(param) as Start & { also?: Start[] };
  return [{ job, by }, ...also];
}

/**
 * Takes the next position of an order for a job that is about to be created, and for all other starts of this process that wait
 * for one. `chain` is an `orderId`. Returns the job's tag. Needs one request, or two where many jobs start at once, if no other
 * process has taken a position since the one that `orders` remembers. Otherwise it searches for the end of the order first.
 */
export async function positionIn(
  chain: string,
  client: Requests,
  { id, timeoutAt }: { id: string; timeoutAt: number },
  orders: Orders = new Map(),
): Promise<Record<string, string>> {
  const order = orders.get(chain) ?? { n: 0, at: 0, waiting: new Map() };
  const { waiting } = order;
  orders.delete(chain);
  if (orders.size >= REMEMBERED.most) orders.delete(orders.keys().next().value as string);
  orders.set(chain, order);
  const saw = (n: number) => Object.assign(order, { n: Math.max(n, order.n), at: Date.now() });
  const get = (n: number) => client.call(getOf(chain + n));
  const look = async (after: number) => saw((await last(get, { after })).n);
  if (Date.now() - order.at >= REMEMBERED.for) await look(0);
  const own: Waiting = { job: id, by: crypto.randomUUID(), timeoutAt, at: 0 };
  try {
    while (own.n === undefined) {
      own.at = Date.now();
      waiting.set(own.by, own);
      // A request that was aborted may have left its start behind.
      for (const { by, at } of waiting.values()) if (own.at - at > GRACE) waiting.delete(by);
      const starts = [...waiting.values()].slice(0, TOGETHER);
      const [first, ...also] = starts.map(({ job, by }) => ({ job, by }));
      const n = order.n + 1;
      const lasts = Math.max(...starts.map((each) => each.timeoutAt));
      const position = await client.call(childOf(chain + n, lasts, { param: { ...first, also } }));
      const isNew = n > order.n;
      saw(n);
      let isOthers = true;
      for (const { by } of startsIn(position as PromiseRecord)) {
        const one = waiting.get(by);
        if (!one) continue;
        one.n = n;
        isOthers = !waiting.delete(by);
      }
      if (isNew && isOthers) await look(n);
    }
    return { [ORDER]: chain + own.n };
  } finally {
    waiting.delete(own.by);
  }
}

/**
 * When a job may begin: `now`, which is also recorded as its mark; when one of the returned promises has settled; or never
 * (`late`), as it was created so long after its position that later jobs did not wait for it. `cleanupTime`: how long the
 * clean-up of a job may take, in milliseconds.
 *
 * @throws {LeaseLost}
 */
export async function turnOf(
  { id, tags, createdAt }: PromiseRecord,
  { limit, cleanupTime }: { limit: number; cleanupTime: number },
  lease: Lease,
  now: number,
): Promise<"now" | "late" | string[]> {
  const link = chainLink(tags[ORDER] ?? "");
  if (!link || (await lease.get(begunId(id)))) return "now";
  const own = await lease.get(link.chain + link.n);
  if (own && createdAt > own.createdAt + GRACE) return "late";
  const [ahead, timers] = [new Set<string>(), new Set<string>()];
  const add = async (promise: PromiseRecord | undefined) => {
    if (promise?.state !== "pending") return;
    if (promise.id === cleanUpId(promise.tags["resonate:parent"] ?? "")) {
      // One that no worker can do, as the code is gone, stays pending for a day. The server's clock decides.
      const due = promise.createdAt + cleanupTime + CLEAN_UP_GRACE;
      const timer = await lease.create(cleanUpTimerId(id, due), undefined, { due });
      if (timer.state !== "pending") return;
      timers.add(timer.id);
    }
    ahead.add(promise.id);
  };
  // A cancelled job that had begun is at work until its clean-up ends.
  const addBegun = async (job: PromiseRecord | undefined) =>
    add(job?.state === "rejected_canceled" ? await lease.get(cleanUpId(job.id)) : job);
  for await (const { job, position, at } of startsBefore(id, link, own, lease)) {
    const until = position.createdAt + GRACE;
    const other = await lease.get(job);
    if (!other && now < until) {
      const due = Math.min(position.createdAt + nextLook(now - position.createdAt), until);
      ahead.add((await lease.create(positionTimerId(id, at, due), undefined, { due })).id);
    }
    if (other?.tags[ORDER] === position.id && other.createdAt <= until) {
      const begun = await lease.get(begunId(job));
      if (begun) await addBegun(other);
      else await add(other);
      const beside = begun ? (decodeValue(begun.param) as { beside: string[] }).beside : [];
      for (const each of beside) if (ahead.size < limit) await addBegun(await lease.get(each));
      if (begun) break;
    }
    if (ahead.size >= limit) break;
  }
  if (ahead.size >= limit) return [...ahead, ...timers];
  await lease.create(begunId(id), { beside: [...ahead] }, "resolved");
  return "now";
}

/** How long after its position a missing job is looked for again: 1 s, 2 s, 4 s and so on, as it is about to be created. */
const nextLook = (waited: number) => 1_000 * 2 ** Math.ceil(Math.log2(Math.max(waited, 0) / 1_000 + 1));

/** The starts before a job's own, newest first, each with its position and its place in it. */
async function* startsBefore(
  id: string,
  { chain, n }: { chain: string; n: number },
  own: PromiseRecord | undefined,
  lease: Lease,
): AsyncGenerator<{ job: string; position: PromiseRecord; at: string }> {
  for (let m = n, missing = 0; m > 0 && missing < MISSING; m--) {
    const position = m === n ? own : await lease.get(chain + m);
    missing = position ? 0 : missing + 1;
    if (!position) continue;
    const jobs = startsIn(position).map(({ job }) => job);
    const end = m === n ? jobs.indexOf(id) : jobs.length;
    for (let i = end - 1; i >= 0; i--) yield { job: jobs[i] as string, position, at: `${m}.${i}` };
  }
}
