/**
 * Removes jobs that ended long ago: a job's promise, its task, what was recorded below it (`job:…`) and all generations of
 * its name (`job~2`, …) go together, for a generation that was left alone would stand for the name. What is no job, such as
 * what counts the places of a caller, stays.
 */
import { KEEP } from "../../core/resonate/codec.ts";
import type { Store } from "./store.ts";

/** How many jobs are looked at in one transaction: requests are answered in between. */
const BATCH = 50;

/** How long to leave to requests between two batches, in milliseconds. */
const PAUSE = 20;

/** How often all that has ended is looked through, in milliseconds: more often where less is kept. */
const LONGEST_PAUSE = 3_600_000;
const SHORTEST_PAUSE = 200;

/** The jobs looked at last, in the order in which they ended. */
export interface SweepPosition {
  settledAt: number;
  id: string;
}

/** Looks through the stored jobs in pieces, again and again, until it is stopped. */
export class Retention {
  readonly #store: Store;
  readonly #keep: number;
  readonly #commit: (work: () => void) => boolean;
  #timer: NodeJS.Timeout | undefined;
  #at: SweepPosition | undefined;

  /** `keep` is in milliseconds. `commit` runs work in a transaction; false when that failed. */
  constructor(store: Store, keep: number, commit: (work: () => void) => boolean) {
    this.#store = store;
    this.#keep = keep;
    this.#commit = commit;
    this.#schedule(this.#longPause);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  get #longPause(): number {
    return Math.min(Math.max(this.#keep / 10, SHORTEST_PAUSE), LONGEST_PAUSE);
  }

  #schedule(pause: number): void {
    this.#timer = setTimeout(() => this.#sweep(), pause);
    this.#timer.unref();
  }

  #sweep(): void {
    let next: SweepPosition | undefined;
    const done = this.#commit(() => {
      next = sweep(this.#store, Date.now(), this.#keep, this.#at);
    });
    this.#at = done ? next : undefined;
    this.#schedule(this.#at ? PAUSE : this.#longPause);
  }
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
