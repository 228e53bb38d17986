/** Follows a caller's jobs while somebody wants to know how they end. */
import type { SettlementChannel, SettlementSource } from "../../core/jobs/settlements.ts";
import { followPromises } from "../../core/jobs/waiting/follow.ts";
import type { Channel } from "../../core/resonate/connection/connections.ts";
import { ResonateUnavailable } from "../../core/resonate/connection/failures.ts";
import { isRoot, rootOf } from "../../core/resonate/ids.ts";
import type { JobLooks, Running } from "./job-looks.ts";
import type { JobTable } from "./job-table.ts";

/** How many jobs are listened to at once. Where there are more, each look also reads some of them. */
const MOST_HEARD = 500;

/** How many jobs one look reads, and how many requests run at once. */
const LOOKS = 40;

/** How many progress feeds are read at once. */
const FEEDS = 8;

/** How long after its start a job is first listened to, in milliseconds: by then its promise should exist. */
const CREATED = 300;

/** How long jobs are followed after a request for events, in milliseconds. */
export const INTEREST = 60_000;

interface Watched {
  source: SettlementSource | undefined;
  /** The caller's key; empty while it is not known. */
  key(): string;
  jobs: Pick<JobTable, "pending" | "leastSeen">;
  looks: Pick<JobLooks, "lookAt" | "listen" | "readFeed">;
}

/** A job that is listened to, and whether its progress feed is listened to as well. */
interface Told {
  job: Running;
  isRead: boolean;
}

export class Watch {
  readonly #watched: Watched;
  #until = 0;
  /** Until when progress feeds are followed as well, in milliseconds since the epoch. */
  #feedsUntil = 0;
  #end: AbortController | undefined;
  #lookAgain: (() => void) | undefined;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** Follows the jobs until `until`, in milliseconds since the epoch; `andFeeds`: also their progress feeds. */
  extend(until: number, andFeeds: boolean): void {
    this.#until = Math.max(this.#until, until);
    if (andFeeds) {
      const isNew = this.#feedsUntil < Date.now();
      this.#feedsUntil = Math.max(this.#feedsUntil, until);
      if (isNew) this.#lookAgain?.();
    }
    if (this.#end) return;
    const end = new AbortController();
    this.#end = end;
    this.#arm();
    this.#follow(end.signal).catch(() => {}); // `followPromises` never rejects.
  }

  /** Called when a job is about to be started. */
  onStart(): void {
    if (this.#lookAgain) setTimeout(this.#lookAgain, CREATED);
  }

  #arm(): void {
    setTimeout(() => {
      if (Date.now() < this.#until) return this.#arm();
      this.#end?.abort();
      this.#end = undefined;
      this.#lookAgain = undefined;
    }, this.#until - Date.now());
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { source, key, jobs, looks } = this.#watched;
    const lookAtSome = () => looks.lookAt(jobs.leastSeen(Date.now(), LOOKS));
    let current: { channel: SettlementChannel; heard: Map<string, Told> } | undefined;
    const readFeed = async (told: Told, channel: Channel) => {
      told.isRead = true;
      await looks.readFeed(told.job, channel).catch((error) => {
        told.isRead = false;
        throw error;
      });
    };
    const look = async (channel: SettlementChannel | undefined) => {
      if (!channel || current?.channel !== channel) return lookAtSome();
      const { heard } = current;
      const most = jobs.pending(MOST_HEARD + 1);
      const wanted = most.slice(0, MOST_HEARD);
      const ids = wanted.filter((id) => !heard.has(id));
      if (ids.length > 0) await channel.add(ids);
      for (let i = 0; i < ids.length; i += LOOKS) {
        const some = ids.slice(i, i + LOOKS);
        const found = await Promise.all(some.map((id) => looks.listen(id, channel)));
        for (const [n, id] of some.entries()) {
          const job = found[n];
          if (job) heard.set(id, { job, isRead: false });
        }
      }
      if (Date.now() < this.#feedsUntil) {
        const silent = [...heard.values()].filter(({ isRead }) => !isRead);
        for (let i = 0; i < silent.length; i += FEEDS)
          await Promise.all(silent.slice(i, i + FEEDS).map((told) => readFeed(told, channel)));
      }
      // A promise that does not exist yet is tried again soon.
      if (wanted.some((id) => !heard.has(id))) this.onStart();
      if (most.length > MOST_HEARD) await lookAtSome();
    };
    let isLooking = false;
    this.#lookAgain = () => {
      const { channel } = current ?? {};
      if (!channel || isLooking || signal.aborted) return;
      isLooking = true;
      look(channel)
        .catch(() => {}) // The next look tries again.
        .finally(() => {
          isLooking = false;
        });
    };
    const open = async (onNews: (id: string) => void, until: AbortSignal) => {
      if (!source) throw new ResonateUnavailable("nobody is connected to it for news");
      const channel = await source.open({ ids: [], caller: key(), onNews: ({ id }) => onNews(id), signal: until });
      current = { channel, heard: new Map() };
      return channel;
    };
    const hear = (id: string, channel: Channel) => {
      const told = current?.heard.get(rootOf(id));
      if (isRoot(id)) current?.heard.delete(id);
      else if (told && Date.now() < this.#feedsUntil) return readFeed(told, channel);
      // Nothing more is pushed of the feed until it is read again.
      else if (told) told.isRead = false;
    };
    // The listener reports ends to the object directly. If a report is lost, the next look finds the end.
    await followPromises({ open, look, onNews: hear }, signal);
  }
}
