/**
 * Removes jobs that ended long ago: a job's promise, its task, what was recorded below it (`job:…`) and all generations of
 * its name (`job~2`, …) go together, for a generation that was left alone would stand for the name. What is no job, such as
 * what counts the places of a caller, stays.
 */
import { KEEP } from "../../core/resonate/codec.ts";
import type { Store } from "./store.ts";

/** How many jobs are looked at in one transaction: requests are answered in between. */
const BATCH = 50;

/** The jobs looked at last, in the order in which they ended. */
export interface SweepPosition {
  settledAt: number;
  id: string;
}

/**
 * Removes those of the next jobs after `at` that ended longer than `keep` milliseconds before `now`. Returns where to go on;
 * undefined when there are no more. Runs in its caller's transaction.
 */
export function sweep(
  store: Store,
  now: number,
  keep: number,
  at: SweepPosition | undefined,
): SweepPosition | undefined {
  const jobs = store.ended(at ?? { settledAt: 0, id: "" }, now, BATCH);
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
  return jobs.length < BATCH ? undefined : last;
}
