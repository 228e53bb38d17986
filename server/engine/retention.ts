/**
 * Removes jobs that ended long ago. A job's promise, its task, its children (`job:…`) and all generations of its name
 * (`job~2`, …) go together, since a generation that stayed would stand for the name. Then the promises go that
 * `isBookkeepingSql` of `core/store/ids.ts` finds.
 */
import { ENTRY, KEEP } from "../../core/store/codec.ts";
import { chainLink, isReservationOver } from "../../core/store/ids.ts";
import { BOOKKEEPING_RETENTION, endOf, isLandmark } from "../../core/store/sequence.ts";
import type { EndPosition, Store } from "./store.ts";

/** How many jobs one transaction looks at: requests are answered in between. */
const JOBS = 50;
/** The same for bookkeeping, of which each is one row. */
const BOOKKEEPING = 250;

/** What was looked at last: first come all jobs in the order in which they ended, then all bookkeeping. */
export interface SweepPosition extends EndPosition {
  isBookkeeping?: boolean;
}

const START = { settledAt: 0, id: "" };

/**
 * Removes those of the next jobs after `at` that ended more than `keep` milliseconds before `now`, then bookkeeping without
 * use. Returns where to go on, undefined at the end. Runs in its caller's transaction.
 */
export function sweep(
  store: Store,
  now: number,
  keep: number,
  at: SweepPosition | undefined,
): SweepPosition | undefined {
  if (at?.isBookkeeping) return sweepBookkeeping(store, now, at);
  const jobs = store.endedJobs(at ?? START, now, JOBS);
  for (const { id } of jobs) {
    const isOver = store.generations(id).every(({ state, settledAt, tags }) => {
      const own = (JSON.parse(tags) as Record<string, string>)[KEEP];
      const kept = own === undefined ? keep : own === "forever" ? Number.POSITIVE_INFINITY : Number(own);
      return state !== "pending" && settledAt !== null && !(settledAt + kept > now);
    });
    if (isOver) store.remove(id);
  }
  return jobs.length < JOBS ? { ...START, isBookkeeping: true } : jobs.at(-1);
}

function sweepBookkeeping(store: Store, now: number, at: SweepPosition): SweepPosition | undefined {
  const page = store.endedBookkeeping(at, now - BOOKKEEPING_RETENTION, BOOKKEEPING);
  const ends = new Map<string, number>();
  const endOfChain = (chain: string) => {
    const end = ends.get(chain) ?? endOf((n) => store.has(chain + n));
    ends.set(chain, end);
    return end;
  };
  const isListed = (tags: string) => {
    const job = (JSON.parse(tags) as Record<string, string>)[ENTRY];
    return job === undefined || store.has(job);
  };
  for (const { id, tags } of page) {
    const link = chainLink(id);
    const isNeeded = link
      ? (link.isEntry && isListed(tags)) || isLandmark(link.n, endOfChain(link.chain))
      : !isReservationOver(id, now);
    if (!isNeeded) store.removeOne(id);
  }
  const last = page.at(-1);
  return last && page.length === BOOKKEEPING ? { ...last, isBookkeeping: true } : undefined;
}
