/**
 * Removes jobs that finished long ago. A job's promise, its task, its children (`job:…`) and all generations of its name
 * (`job~2`, …) are removed together, since a remaining generation would still hold the name. Then obsolete bookkeeping is
 * removed: promises of limits, which `isLimitSql` of `core/resonate/ids.ts` finds.
 */
import { BOOKKEEPING_RETENTION, chainLink, isLandmark, RETENTION_TAG, sequenceEnd } from "../../core/resonate/index.ts";
import type { EndPosition, Store } from "./store.ts";

/** How many jobs one transaction checks, so that requests are answered between transactions. */
const MAX_JOBS_PER_BATCH = 50;
/** The same for bookkeeping promises, which are one row each. */
const MAX_BOOKKEEPING_PER_BATCH = 250;
/** The shortest interval between two sweeps, in milliseconds. */
const MIN_SWEEP_INTERVAL_MS = 200;

/** The last promise that a sweep checked. A sweep goes through all jobs in the order of their ends, then all bookkeeping. */
export interface SweepPosition extends EndPosition {
  isBookkeeping?: boolean;
}

const FIRST_POSITION = { settledAt: 0, id: "" };

/** The interval between two sweeps: a tenth of the retention, within bounds. All are in milliseconds. */
export function sweepInterval(retention: number, maxInterval: number): number {
  return Math.min(Math.max(retention / 10, MIN_SWEEP_INTERVAL_MS), maxInterval);
}

/**
 * Checks the next batch after `position`, and removes the jobs that finished more than `retention` milliseconds before `now`, or
 * the obsolete bookkeeping. Returns the position to continue from, undefined at the end. Runs in its caller's transaction.
 */
export function sweep(
  store: Store,
  now: number,
  retention: number,
  position: SweepPosition | undefined,
): SweepPosition | undefined {
  if (position?.isBookkeeping) return sweepBookkeeping(store, now, position);
  const jobs = store.finishedJobs(position ?? FIRST_POSITION, now, MAX_JOBS_PER_BATCH);
  for (const { id } of jobs) {
    const isExpired = store.generations(id).every(({ state, settledAt, tags }) => {
      const ownRetention = (JSON.parse(tags) as Record<string, string>)[RETENTION_TAG];
      if (state === "pending" || settledAt === null || ownRetention === "forever") return false;
      return !(settledAt + Number(ownRetention ?? retention) > now);
    });
    if (isExpired) store.remove(id);
  }
  return jobs.length < MAX_JOBS_PER_BATCH ? { ...FIRST_POSITION, isBookkeeping: true } : jobs.at(-1);
}

function sweepBookkeeping(store: Store, now: number, position: SweepPosition): SweepPosition | undefined {
  const page = store.settledBookkeeping(position, now - BOOKKEEPING_RETENTION, MAX_BOOKKEEPING_PER_BATCH);
  const lastLinks = new Map<string, number>();
  const lastLinkOf = (chain: string) => {
    const last = lastLinks.get(chain) ?? sequenceEnd((n) => store.has(chain + n));
    lastLinks.set(chain, last);
    return last;
  };
  for (const { id } of page) {
    const link = chainLink(id);
    if (link && !isLandmark(link.n, lastLinkOf(link.chain))) store.removeOne(id);
  }
  const last = page.at(-1);
  return last && page.length === MAX_BOOKKEEPING_PER_BATCH ? { ...last, isBookkeeping: true } : undefined;
}
