/** Follows a caller's jobs while somebody wants to know how they end. */
import type { ObjectPart } from "../../core/jobs/index.ts";
import { type FollowerOptions, JobFollower } from "./job-follower.ts";

export class Watch implements ObjectPart {
  readonly name = "watch";
  readonly #options: FollowerOptions;
  #until = 0;
  /** Until when progress feeds are followed as well, in milliseconds since the epoch. */
  #feedsUntil = 0;
  #follower: JobFollower | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /** Follows the jobs until `until`, in milliseconds since the epoch; `andFeeds`: also their progress feeds. */
  extend(until: number, andFeeds: boolean): void {
    this.#until = Math.max(this.#until, until);
    if (andFeeds) {
      const isNew = this.#feedsUntil < Date.now();
      this.#feedsUntil = Math.max(this.#feedsUntil, until);
      if (isNew) this.#follower?.lookAgain();
    }
    if (this.#follower) return;
    this.#follower = new JobFollower(this.#options, () => Date.now() < this.#feedsUntil);
    this.#endLater();
  }

  onStart(): void {
    this.#follower?.onStart();
  }

  #endLater(): void {
    setTimeout(() => {
      if (Date.now() < this.#until) return this.#endLater();
      this.#follower?.end();
      this.#follower = undefined;
    }, this.#until - Date.now());
  }
}
