/**
 * Removes jobs that ended long ago. A job's promise, its task, its children (`job:…`) and all generations of its name
 * (`job~2`, …) are removed together, since a remaining generation would still hold the name. Then obsolete bookkeeping is
 * removed: promises of limits, which `isLimitSql` of `core/resonate/ids.ts` finds.
 */
import { RETENTION_TAG } from "../../core/resonate/codec.ts";
import { chainLink } from "../../core/resonate/ids.ts";
import { BOOKKEEPING_RETENTION, endOf, isLandmark } from "../../core/resonate/sequence.ts";
import type { EndPosition, Store } from "./store.ts";

/** How many jobs one transaction looks at, so that requests are answered between transactions. */
const JOBS = 50;
/** The same for bookkeeping promises, which are one row each. */
const BOOKKEEPING = 250;

/** The last promise that a sweep looked at. A sweep goes through all jobs in the order of their ends, then all bookkeeping. */
export interface SweepPosition extends EndPosition {
  isBookkeeping?: boolean;
}

const START = { settledAt: 0, id: "" };

/**
 * Takes the next batch after `at` and removes the jobs that ended more than `keep` milliseconds before `now`, or the obsolete
 * bookkeeping. Returns the position to continue from, undefined at the end. Runs in its caller's transaction.
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
      const own = (JSON.parse(tags) as Record<string, string>)[RETENTION_TAG];
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
  for (const { id } of page) {
    const link = chainLink(id);
    if (link && !isLandmark(link.n, endOfChain(link.chain))) store.removeOne(id);
  }
  const last = page.at(-1);
  return last && page.length === BOOKKEEPING ? { ...last, isBookkeeping: true } : undefined;
}
