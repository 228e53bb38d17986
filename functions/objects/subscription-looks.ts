/** Looks at a caller's running jobs for the sake of its subscriptions, so that their events are found and delivered. */
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { JOB_ENDED } from "../../features/schedules/occurrence.ts";
import { type JobLooks, LOOKS } from "./job-looks.ts";
import type { JobTable } from "./job-table.ts";
import { INTEREST, type Watch } from "./watch.ts";

/**
 * The pauses between two looks, in milliseconds: the first; the longest, which is also the longest for each job; the longest
 * where questions, outputs or progress are wanted, as workers report only ends; and the shortest where many jobs have waited
 * for the longest.
 */
const PAUSES = { first: 30_000, most: 3_600_000, mostOfFeeds: 300_000, least: 10_000 };

/** The least time between an expected end and its look, in milliseconds. */
const SOON = 1_000;

interface Looked {
  jobs: JobTable;
  looks: JobLooks;
  watch: Watch;
  /** The types of events that somebody is subscribed to. */
  names(): readonly string[];
  /** Whether the Resonate server is on this machine or its network, where an open connection costs nothing. */
  isLocal: boolean;
}

/** The next look, when such a look includes jobs that are not due, and the pause before that. In milliseconds since the epoch. */
interface Plan {
  at: number;
  /** State of 6b77826e and before lacks it: each look includes them. */
  all?: number;
  pause: number;
}

export class SubscriptionLooks {
  readonly #looked: Looked;
  /** Undefined without subscriptions or running jobs. */
  #next: Plan | undefined;

  constructor(looked: Looked) {
    this.#looked = looked;
    this.#next = this.#stored();
  }

  /** When the next look is due; infinite without subscriptions or running jobs. */
  nextAt(): number {
    // A new instance does not know yet that somebody is subscribed.
    if (!this.#next) this.begin();
    return this.#next?.at ?? Infinity;
  }

  /** Drops what is cached, after the stored rows were replaced. */
  reset(): void {
    this.#next = this.#stored();
  }

  /** The stored plan: an object that the platform has evicted continues with it. */
  #stored(): Plan | undefined {
    const { isLocal, jobs } = this.#looked;
    return isLocal ? undefined : (JSON.parse(jobs.get("hearing") ?? "null") ?? undefined);
  }

  /**
   * Begins to follow how jobs end while somebody is subscribed: on one machine over the listener's connection; in an account,
   * where an open connection is billed, by looks with growing pauses.
   */
  begin(): void {
    const all = Math.min(this.#next?.all ?? Infinity, Date.now() + PAUSES.first);
    this.#plan({ at: Math.min(this.#next?.at ?? Infinity, all), all, pause: PAUSES.first });
  }

  /** Begins anew for a job that starts. Returns whether the next look is sooner than before. */
  onStart(): boolean {
    if (this.#next && this.#next.pause <= PAUSES.first) return false;
    this.begin();
    return this.#next !== undefined;
  }

  #plan(plan: Plan): void {
    const { names, jobs, watch, isLocal } = this.#looked;
    const isWanted = names().length > 0 && jobs.pending(1).length > 0;
    if (isWanted && isLocal) watch.extend(Date.now() + INTEREST, this.#areFeedsWanted);
    const isStored = this.#next !== undefined;
    this.#next = isWanted ? plan : undefined;
    if (isWanted || isStored) jobs.set("hearing", JSON.stringify(this.#next ?? null));
  }

  get #areFeedsWanted(): boolean {
    return this.#looked.names().some((name) => name !== JOB_ENDED);
  }

  /** Looks if it is time to. */
  async run(now: number): Promise<void> {
    const { names, jobs, looks, isLocal } = this.#looked;
    if (now < (this.#next?.at ?? 0)) return;
    if (names().length === 0) return this.begin(); // Otherwise an alarm would follow at once, for the look that is due.
    // Each expected end has a look: to look at others each time would cost too much.
    const ids = jobs.leastSeen(now, LOOKS, (this.#next?.all ?? 0) <= now ? now : now - PAUSES.most);
    const found = await looks.lookAt(ids).catch(() => undefined); // The next alarm looks again.
    const areFeedsWanted = this.#areFeedsWanted;
    if (areFeedsWanted) {
      const note = async (job: PromiseRecord | undefined) => {
        if (job?.state === "pending") await looks.noteFeed(job);
      };
      await Promise.all((found ?? []).map(note)).catch(() => {});
    }
    const most = isLocal ? PAUSES.first : areFeedsWanted ? PAUSES.mostOfFeeds : PAUSES.most;
    // A start may have begun anew in the meantime.
    const { all = 0, pause = PAUSES.first } = this.#next ?? {};
    const longer = Math.min(most, pause * 1.5);
    const next = all <= now ? { all: now + longer, pause: longer } : { all, pause };
    const { due, oldest } = jobs.nextLook();
    const wanted = Math.min(Math.max(now, due) + SOON, Math.max(now + PAUSES.least, oldest + PAUSES.most));
    this.#plan({ ...next, at: Math.min(next.all, found ? wanted : Infinity) });
  }
}
