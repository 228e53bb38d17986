import {
  followPromises,
  type RecordedJobs,
  type SettlementChannel,
  type SettlementSource,
} from "../../core/jobs/index.ts";
import { type Channel, isRoot, ResonateUnavailable, rootOf } from "../../core/resonate/index.ts";
import type { JobPromise, JobRefresher } from "./job-refresher.ts";

/** How many jobs are listened to at once. If there are more, each look also reads some of them. */
const MAX_FOLLOWED_JOBS = 500;

/** How many jobs one look reads, and how many requests run at once. */
const MAX_JOBS_READ = 40;

/** How many progress feeds are read at once. */
const MAX_FEEDS_READ = 8;

/** How long after its start a job is first listened to, in milliseconds: by then its promise should exist. */
const CREATION_MS = 300;

export interface FollowerOptions {
  source: SettlementSource | undefined;
  /** The caller's key; empty while it is not known. */
  key(): string;
  jobs: Pick<RecordedJobs, "pending" | "leastSeen">;
  refresher: Pick<JobRefresher, "refresh" | "listen">;
  /** Reads what is new in a job's progress feed, and has the next entry pushed. */
  readFeed(job: JobPromise, channel: Channel): Promise<void>;
}

/** A job that is listened to, and whether its progress feed is listened to as well. */
interface FollowedJob {
  job: JobPromise;
  isRead: boolean;
}

/** Follows a caller's jobs over the connection of a listener, until it is aborted. */
export class JobFollower {
  readonly #options: FollowerOptions;
  readonly #areFeedsWanted: () => boolean;
  readonly #end = new AbortController();
  #current: { channel: SettlementChannel; followed: Map<string, FollowedJob> } | undefined;
  #isLooking = false;

  constructor(options: FollowerOptions, areFeedsWanted: () => boolean) {
    this.#options = options;
    this.#areFeedsWanted = areFeedsWanted;
    // The listener reports ends to the object directly. If a report is lost, the next look finds the end.
    followPromises<string, SettlementChannel>(
      {
        open: (onNews, until) => this.#open(onNews, until),
        check: (channel) => this.#look(channel),
        onNews: (id, channel) => this.#onNews(id, channel),
      },
      this.#end.signal,
    ).catch(() => {}); // It never rejects.
  }

  end(): void {
    this.#end.abort();
  }

  /** Looks for jobs that are not followed yet. */
  lookAgain(): void {
    const { channel } = this.#current ?? {};
    if (!channel || this.#isLooking || this.#end.signal.aborted) return;
    this.#isLooking = true;
    this.#look(channel)
      .catch(() => {}) // The next look tries again.
      .finally(() => {
        this.#isLooking = false;
      });
  }

  /** Looks for a job that is about to be started. */
  onStart(): void {
    setTimeout(() => this.lookAgain(), CREATION_MS);
  }

  async #open(onNews: (id: string) => void, signal: AbortSignal): Promise<SettlementChannel> {
    const { source, key } = this.#options;
    if (!source) throw new ResonateUnavailable("nobody is connected to it for news");
    const channel = await source.open({ ids: [], caller: key(), onNews: ({ id }) => onNews(id), signal });
    this.#current = { channel, followed: new Map() };
    return channel;
  }

  async #look(channel: SettlementChannel | undefined): Promise<void> {
    if (!channel || this.#current?.channel !== channel) return this.#readSome();
    const { followed } = this.#current;
    const open = this.#options.jobs.pending(MAX_FOLLOWED_JOBS + 1);
    const wanted = open.slice(0, MAX_FOLLOWED_JOBS);
    const ids = wanted.filter((id) => !followed.has(id));
    if (ids.length > 0) await channel.add(ids);
    for (let i = 0; i < ids.length; i += MAX_JOBS_READ) {
      const some = ids.slice(i, i + MAX_JOBS_READ);
      const found = await Promise.all(some.map((id) => this.#options.refresher.listen(id, channel)));
      for (const [n, id] of some.entries()) {
        const job = found[n];
        if (job) followed.set(id, { job, isRead: false });
      }
    }
    if (this.#areFeedsWanted()) {
      const unread = [...followed.values()].filter(({ isRead }) => !isRead);
      for (let i = 0; i < unread.length; i += MAX_FEEDS_READ)
        await Promise.all(unread.slice(i, i + MAX_FEEDS_READ).map((one) => this.#readFeed(one, channel)));
    }
    // A promise that does not exist yet is tried again soon.
    if (wanted.some((id) => !followed.has(id))) this.onStart();
    if (open.length > MAX_FOLLOWED_JOBS) await this.#readSome();
  }

  async #readSome(): Promise<void> {
    const { jobs, refresher } = this.#options;
    await refresher.refresh(jobs.leastSeen(Date.now(), MAX_JOBS_READ));
  }

  async #readFeed(followed: FollowedJob, channel: Channel): Promise<void> {
    followed.isRead = true;
    await this.#options.readFeed(followed.job, channel).catch((error) => {
      followed.isRead = false;
      throw error;
    });
  }

  #onNews(id: string, channel: Channel): Promise<void> | undefined {
    const followed = this.#current?.followed.get(rootOf(id));
    if (isRoot(id)) this.#current?.followed.delete(id);
    else if (followed && this.#areFeedsWanted()) return this.#readFeed(followed, channel);
    // Nothing more is pushed of the feed until it is read again.
    else if (followed) followed.isRead = false;
    return undefined;
  }
}
