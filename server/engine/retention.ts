/**
 * Removes jobs that ended long ago: a job's promise, its task, what was recorded below it (`job:…`) and all generations of
 * its name (`job~2`, …) go together, for a generation that was left alone would stand for the name. After them goes what has
 * counted, limited and listed jobs and is of no use any more: see `core/store/ids.ts`.
 */
import { ENTRY, KEEP } from "../../core/store/codec.ts";
import { chainLink, isReservationOver } from "../../core/store/ids.ts";
import { BOOKKEEPING_RETENTION, endOf, isLandmark } from "../../core/store/sequence.ts";
import type { Store } from "./store.ts";

/** How many jobs are looked at in one transaction: requests are answered in between. */
const BATCH = 50;

/** How many of what counts, limits and lists them. */
const AIDS = 250;

/** What was looked at last, in the order in which it ended: of jobs, and then of what counts, limits and lists them. */
export interface SweepPosition {
  settledAt: number;
  id: string;
  isOfAids?: boolean;
}

const START = { settledAt: 0, id: "" };

/**
 * Removes those of the next jobs after `at` that ended longer than `keep` milliseconds before `now`, and then what is of no
 * use any more. Returns where to go on; undefined when there is no more. Runs in its caller's transaction.
 */
export function sweep(
  store: Store,
  now: number,
  keep: number,
  at: SweepPosition | undefined,
): SweepPosition | undefined {
  if (at?.isOfAids) return sweepAids(store, now, at);
  const jobs = store.ended(at ?? START, now, BATCH);
  for (const { id } of jobs) {
    const generations = store.generations(id);
    const isOver = generations.every(({ state, settledAt, tags }) => {
      const said = (JSON.parse(tags) as Record<string, string>)[KEEP];
      const kept = said === undefined ? keep : said === "forever" ? Number.POSITIVE_INFINITY : Number(said);
      return state !== "pending" && settledAt !== null && !(settledAt + kept > now);
    });
    if (isOver) store.remove(id);
  }
  const last = jobs.at(-1);
  return jobs.length < BATCH ? { ...START, isOfAids: true } : last;
}

function sweepAids(store: Store, now: number, at: SweepPosition): SweepPosition | undefined {
  const aids = store.endedAids(at, now - BOOKKEEPING_RETENTION, AIDS);
  const ends = new Map<string, number>();
  const isNeeded = (chain: string, n: number) => {
    const end = ends.get(chain) ?? endOf((n) => store.has(chain + n));
    ends.set(chain, end);
    return isLandmark(n, end);
  };
  // One from before entries said what they are of stays.
  const isOfUse = (tags: string) => {
    const job = (JSON.parse(tags) as Record<string, string>)[ENTRY];
    return job === undefined || store.has(job);
  };
  for (const { id, tags } of aids) {
    const link = chainLink(id);
    if (!link ? isReservationOver(id, now) : !(link.isEntry && isOfUse(tags)) && !isNeeded(link.chain, link.n))
      store.removeOne(id);
  }
  const last = aids.at(-1);
  return last && aids.length === AIDS ? { ...last, isOfAids: true } : undefined;
}
