/** Follows a caller's jobs while somebody wants to know how they end. */
import type { SettlementSource } from "../../core/jobs/endpoint.ts";
import { subscribe } from "../../core/jobs/promise-watcher.ts";
import type { Channel } from "../../core/store/connections.ts";
import { ResonateUnavailable } from "../../core/store/failures.ts";

/** How many jobs are listened to at once. Of further ones some are looked at each time. */
const MOST_HEARD = 500;

/** How many jobs are looked at each time, and how many requests are under way at once. */
const LOOKS = 40;

/** How long after its start a job is first listened to, in milliseconds: its promise is created meanwhile. */
const CREATED = 300;

/** How long nothing may come before the jobs are looked at anyway, in milliseconds. */
const QUIET = 30_000;

/** The jobs of the caller, and what is known of them. */
export interface Watched {
  source: SettlementSource | undefined;
  key(): string;
  pending(limit: number): string[];
  leastSeen(limit: number): string[];
  /** Looks at promises, and notes what is found. */
  look(ids: readonly string[]): Promise<void>;
  /** Has the end of a job pushed, and notes how it is. Returns whether its promise exists. */
  listen(id: string, channel: Channel): Promise<boolean>;
}

export class Watch {
  readonly #jobs: Watched;
  #until = 0;
  #end: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lookAgain: (() => void) | undefined;

  constructor(jobs: Watched) {
    this.#jobs = jobs;
  }

  /** Follows the jobs until then, in milliseconds since the epoch. */
  extend(until: number): void {
    this.#until = Math.max(this.#until, until);
    if (this.#end) return;
    const end = new AbortController();
    this.#end = end;
    this.#arm();
    this.#follow(end.signal).catch(() => {}); // It never rejects.
  }

  /** A job is about to be started. */
  onStart(): void {
    if (this.#lookAgain) setTimeout(this.#lookAgain, CREATED);
  }

  #arm(): void {
    this.#timer = setTimeout(() => {
      if (Date.now() < this.#until) return this.#arm();
      clearTimeout(this.#timer);
      this.#end?.abort();
      this.#end = undefined;
      this.#lookAgain = undefined;
    }, this.#until - Date.now());
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { source, pending, leastSeen, key } = this.#jobs;
    let open: { channel: Channel; add: (ids: readonly string[]) => Promise<void>; heard: Set<string> } | undefined;
    const look = async (channel: Channel | undefined) => {
      if (!channel || open?.channel.address !== channel.address) return this.#jobs.look(leastSeen(LOOKS));
      const { add, heard } = open;
      const most = pending(MOST_HEARD + 1);
      const wanted = most.slice(0, MOST_HEARD);
      const ids = wanted.filter((id) => !heard.has(id));
      if (ids.length > 0) await add(ids);
      for (let i = 0; i < ids.length; i += LOOKS) {
        const some = ids.slice(i, i + LOOKS);
        const found = await Promise.all(some.map((id) => this.#jobs.listen(id, channel)));
        for (const [n, id] of some.entries()) if (found[n]) heard.add(id);
      }
      // A promise that is not there yet is listened to soon.
      if (wanted.some((id) => !heard.has(id))) this.onStart();
      if (most.length > MOST_HEARD) await this.#jobs.look(leastSeen(LOOKS));
    };
    let isLooking = false;
    this.#lookAgain = () => {
      const { channel } = open ?? {};
      if (!channel || isLooking || signal.aborted) return;
      isLooking = true;
      look(channel)
        .catch(() => {}) // The next look finds it.
        .finally(() => {
          isLooking = false;
        });
    };
    const opener = {
      async open(_names: readonly string[], onNews: (news: never) => void, until: AbortSignal): Promise<Channel> {
        if (!source) throw new ResonateUnavailable("nobody is connected to it for news");
        const channel = await source.open({
          ids: [],
          caller: key(),
          onNews: ({ id }) => onNews({ name: id } as never),
          signal: until,
        });
        open = { channel, add: channel.add, heard: new Set() };
        return channel;
      },
    };
    await subscribe(
      opener as never,
      // The listener has told the object what has ended; if that was lost, the next look finds it.
      { names: [], look, onNews: ({ name }) => open?.heard.delete(name), quiet: QUIET },
      signal,
    );
  }
}
