/**
 * The order of the jobs of a kind that have the same key, when the kind limits how many of them run at once. Each start takes a
 * position: the next promise in a sequence. The position names the job, and a tag of the job names the position. Starts that
 * come at the same moment share a position, which lists them in order. A job that is executed for the first time reads the jobs
 * before it, and begins if fewer of them are pending, or clean up after a cancellation, than may run at once. Otherwise it sleeps
 * until one of those ends. When a job begins, a child of its promise (the mark) lists the promises of the earlier jobs and
 * clean-ups that were still running, so that nobody has to look further back.
 */
import { childOf, decodeValue, getOf, ORDER_TAG } from "../resonate/codec.ts";
import type { Requests } from "../resonate/connection/client.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { last } from "../resonate/sequence.ts";

/** How long after its position a job may be created, in milliseconds. Later jobs do not wait longer than this for it. */
export const MAX_CREATION_DELAY_MS = 30_000;

/** How many starts share a position at most, as each of them sends the names of all. */
const MAX_STARTS_OF_POSITION = 100;

/**
 * For how long the end of an order is remembered. The remembered position still exists then, as the server removes none that is
 * younger than a day: see `BOOKKEEPING_RETENTION`.
 */
const ORDER_MEMORY_MS = 3_600_000;

/** Of how many orders the end is remembered. */
const MAX_REMEMBERED_ORDERS = 10_000;

/** A start; `by` distinguishes it from other starts of the same job. */
interface Start {
  job: string;
  by: string;
}

/** A start that has no position yet, or has just got the `n`th; `at` is when it last tried to get one. */
interface WaitingStart extends Start {
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
  waiting: Map<string, WaitingStart>;
}

export type Orders = Map<string, Order>;

/** The starts that share a position, in their order. */
export function startsIn({ param }: PromiseRecord): Start[] {
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
  if (orders.size >= MAX_REMEMBERED_ORDERS) orders.delete(orders.keys().next().value as string);
  orders.set(chain, order);
  const saw = (n: number) => Object.assign(order, { n: Math.max(n, order.n), at: Date.now() });
  const get = (n: number) => client.call(getOf(chain + n));
  const look = async (after: number) => saw((await last(get, { after })).n);
  if (Date.now() - order.at >= ORDER_MEMORY_MS) await look(0);
  const ownEntry: WaitingStart = { job: id, by: crypto.randomUUID(), timeoutAt, at: 0 };
  try {
    while (ownEntry.n === undefined) {
      ownEntry.at = Date.now();
      waiting.set(ownEntry.by, ownEntry);
      // A request that was aborted may have left its start behind.
      for (const { by, at } of waiting.values()) if (ownEntry.at - at > MAX_CREATION_DELAY_MS) waiting.delete(by);
      const starts = [...waiting.values()].slice(0, MAX_STARTS_OF_POSITION);
      const [first, ...also] = starts.map(({ job, by }) => ({ job, by }));
      const n = order.n + 1;
      const lastTimeout = Math.max(...starts.map((each) => each.timeoutAt));
      const position = await client.call(childOf(chain + n, lastTimeout, { param: { ...first, also } }));
      const isNew = n > order.n;
      saw(n);
      let isOthers = true;
      for (const { by } of startsIn(position as PromiseRecord)) {
        const start = waiting.get(by);
        if (!start) continue;
        start.n = n;
        isOthers = !waiting.delete(by);
      }
      if (isNew && isOthers) await look(n);
    }
    return { [ORDER_TAG]: chain + ownEntry.n };
  } finally {
    waiting.delete(ownEntry.by);
  }
}
