import { type Places, placesIn } from "../../core/jobs/quota.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { RESERVATION } from "../../core/store/codec.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";
import { type LineLog, reasonOf } from "./instruments.ts";

/** Gives back the places of jobs that have ended here; of one caller's jobs that end at once, those of all together. */
export class Returns {
  readonly #store: RemoteStore;
  readonly #log: LineLog;
  /** What is to be given back when the request that is under way has been answered. */
  readonly #next = new Map<string, { count: number; done: Promise<void> }>();
  readonly #running = new Map<string, Promise<void>>();

  constructor(store: RemoteStore, log: LineLog) {
    this.#store = store;
    this.#log = log;
  }

  /** Resolves when the places of a job that has ended are given back, or cannot be: they are lost until their period is over. */
  async give({ tags }: PromiseRecord): Promise<void> {
    const tag = tags[RESERVATION];
    if (tag === undefined) return;
    const places = placesIn(tag);
    const { base, count } = places;
    const next = this.#next.get(base);
    if (next) {
      next.count += count;
      return next.done;
    }
    const mine = { count, done: Promise.resolve() };
    this.#next.set(base, mine);
    mine.done = this.#give(places, mine);
    return mine.done;
  }

  async #give(places: Places, mine: { count: number }): Promise<void> {
    const { base } = places;
    await this.#running.get(base);
    this.#next.delete(base);
    const running = this.#store.giveBack({ ...places, count: mine.count }).catch((error) => {
      this.#log.debug({ reason: reasonOf(error) }, "places not given back");
    });
    this.#running.set(base, running);
    await running;
    if (this.#running.get(base) === running) this.#running.delete(base);
  }
}
