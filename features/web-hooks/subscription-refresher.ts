/** Refreshes a caller's running jobs for the sake of its subscriptions, so that their events are found and delivered. */
import { type EventSource, INTEREST_MS, JOB_ENDED, type ObjectRecord } from "../../core/jobs/index.ts";
import type { PromiseRecord } from "../../core/resonate/index.ts";

/** How many jobs one refresh reads. */
const MAX_JOBS_REFRESHED = 40;

/** The first pause between two refreshes, in milliseconds. */
const FIRST_PAUSE_MS = 30_000;

/** The longest pause, which is also the longest for each job; shorter if more than ends is wanted, as workers report only ends. */
const MAX_PAUSE_MS = 3_600_000;
const MAX_PAUSE_OF_FEEDS_MS = 300_000;

/** The shortest pause, if many jobs have waited for the longest. */
const MIN_PAUSE_MS = 10_000;

/** The least time between an expected end and its refresh, in milliseconds. */
const AFTER_END_MS = 1_000;

/** Where the object's storage has the plan. */
const PLAN = "subscription_refresh";

interface RefresherOptions {
  record: Pick<ObjectRecord, "get" | "set" | "jobs" | "refresh">;
  /** Has the ends of jobs noticed until a time; `andFeeds`: also what they report. */
  follow(until: number, andFeeds: boolean): void;
  noteFeed: EventSource["noteFeed"];
  /** The types of events that somebody is subscribed to. */
  types(): readonly string[];
  /** Whether the Resonate server is on this machine or its network, where an open connection costs nothing. */
  isServerLocal: boolean;
}

/** The next refresh, when such a refresh includes jobs that are not due, and the pause before that. In milliseconds since the epoch. */
interface Plan {
  at: number;
  all: number;
  pause: number;
}

export class SubscriptionRefresher {
  readonly #options: RefresherOptions;
  /** Undefined without subscriptions or running jobs. */
  #next: Plan | undefined;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  /** When the next refresh is due; infinite without subscriptions or running jobs. */
  nextAt(): number {
    // A new instance does not know yet that somebody is subscribed.
    if (!this.#next) this.begin();
    return this.#next?.at ?? Infinity;
  }

  /** Reads the stored plan: an object that the platform has evicted continues with it. */
  load(): void {
    const { isServerLocal, record } = this.#options;
    this.#next = isServerLocal ? undefined : (JSON.parse(record.get(PLAN) ?? "null") ?? undefined);
  }

  /**
   * Begins to follow how jobs end while somebody is subscribed: on one machine over the listener's connection; in an account,
   * where an open connection is billed, by refreshes with growing pauses.
   */
  begin(): void {
    const all = Math.min(this.#next?.all ?? Infinity, Date.now() + FIRST_PAUSE_MS);
    this.#plan({ at: Math.min(this.#next?.at ?? Infinity, all), all, pause: FIRST_PAUSE_MS });
  }

  /** Begins anew for a job that starts. Returns whether the next refresh is sooner than planned. */
  onStart(): boolean {
    if (this.#next && this.#next.pause <= FIRST_PAUSE_MS) return false;
    this.begin();
    return this.#next !== undefined;
  }

  #plan(plan: Plan): void {
    const { types, record, follow, isServerLocal } = this.#options;
    const isWanted = types().length > 0 && record.jobs.pending(1).length > 0;
    if (isWanted && isServerLocal) follow(Date.now() + INTEREST_MS, this.#areFeedsWanted);
    const isStored = this.#next !== undefined;
    this.#next = isWanted ? plan : undefined;
    if (isWanted || isStored) record.set(PLAN, JSON.stringify(this.#next ?? null));
  }

  get #areFeedsWanted(): boolean {
    return this.#options.types().some((name) => name !== JOB_ENDED);
  }

  /** Refreshes jobs if it is time to. */
  async run(now: number): Promise<void> {
    const { types, record, noteFeed, isServerLocal } = this.#options;
    if (now < (this.#next?.at ?? 0)) return;
    if (types().length === 0) return this.begin(); // Otherwise an alarm would follow at once, for the refresh that is due.
    // Each expected end has a refresh: to read others each time would cost too much.
    const before = (this.#next?.all ?? 0) <= now ? now : now - MAX_PAUSE_MS;
    const ids = record.jobs.leastSeen(now, MAX_JOBS_REFRESHED, before);
    const found = await record.refresh(ids).catch(() => undefined); // The next alarm tries again.
    const areFeedsWanted = this.#areFeedsWanted;
    if (areFeedsWanted) {
      const note = async (job: PromiseRecord | undefined) => {
        if (job?.state === "pending") await noteFeed(job);
      };
      await Promise.all((found ?? []).map(note)).catch(() => {});
    }
    const maxPause = isServerLocal ? FIRST_PAUSE_MS : areFeedsWanted ? MAX_PAUSE_OF_FEEDS_MS : MAX_PAUSE_MS;
    // A start may have begun anew in the meantime.
    const { all = 0, pause = FIRST_PAUSE_MS } = this.#next ?? {};
    const longer = Math.min(maxPause, pause * 1.5);
    const next = all <= now ? { all: now + longer, pause: longer } : { all, pause };
    const { due, oldest } = record.jobs.nextLook();
    const wantedAt = Math.min(Math.max(now, due) + AFTER_END_MS, Math.max(now + MIN_PAUSE_MS, oldest + MAX_PAUSE_MS));
    this.#plan({ ...next, at: Math.min(next.all, found ? wantedAt : Infinity) });
  }
}
