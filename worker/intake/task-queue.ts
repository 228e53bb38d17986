import PQueue from "p-queue";
import { Slots } from "../../core/store/pacing/slots.ts";
import type { LeaseRef } from "../../core/store/protocol.ts";

/** How many tasks of a kind are claimed at the same time. */
const CLAIMS = 32;

/** What a lane does with the tasks that are dispatched to it. Nothing of it may reject. */
export interface Handling<Claimed> {
  /** Takes the lease on a task; undefined when another worker has it, or its job has ended. */
  claim(dispatch: LeaseRef): Promise<Claimed | undefined>;
  /** Runs a task that was claimed, when it is its turn. */
  run(claimed: Claimed): Promise<void>;
  /** The caller a claimed task belongs to; empty where callers are not told apart. */
  ownerOf(claimed: Claimed): string;
  /** The same as far as a task's id tells it. */
  keyOf(id: string): string;
  /** How many tasks may be claimed and not have ended. */
  most(): number;
  /** Told how many more tasks wait. */
  onWaiting(more: number): void;
}

/** How many tasks that wait for a place are passed over at once when the lane is closed. */
const PASS_OVER = 32;

/**
 * The tasks of one kind of job that a worker has. They are claimed as they are dispatched, up to a bound, and wait here for
 * a place: a server that hears nothing of a task dispatches it again, and again. Those past the bound stay unclaimed, so
 * that another worker may have them. Callers take turns in being claimed, and in having a place.
 */
export class TaskQueue<Claimed> {
  readonly #handling: Handling<Claimed>;
  readonly #places: Slots;
  readonly #claims = new PQueue({ concurrency: CLAIMS });
  /** Dispatches that are not claimed yet, by caller and by task: one that is made again replaces the one before. */
  readonly #unclaimed = new Map<string, Map<string, LeaseRef>>();
  #waiting = 0;
  #claimed = 0;
  #isClosed = false;

  /** `places`: how many run at once. */
  constructor(places: number, handling: Handling<Claimed>) {
    this.#handling = handling;
    this.#places = new Slots(places);
  }

  add(dispatch: LeaseRef): void {
    if (this.#isClosed) return;
    const key = this.#handling.keyOf(dispatch.id);
    const theirs = this.#unclaimed.get(key) ?? new Map<string, LeaseRef>();
    this.#unclaimed.set(key, theirs);
    if (!theirs.has(dispatch.id)) this.#wait(1);
    theirs.set(dispatch.id, dispatch);
    this.#fill();
  }

  /** Claims nothing more and begins nothing more; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wait(-this.#waiting);
    this.#unclaimed.clear();
    await this.#claims.onIdle();
    await this.#places.drain(PASS_OVER);
  }

  #fill(): void {
    while (this.#claimed < this.#handling.most()) {
      const dispatch = this.#next();
      if (!dispatch) return;
      this.#claimed += 1;
      void this.#claims.add(async () => {
        const claimed = this.#isClosed ? undefined : await this.#handling.claim(dispatch);
        if (claimed !== undefined && !this.#isClosed) return this.#enter(claimed);
        this.#wait(-1);
        return this.#free();
      });
    }
  }

  /** The next dispatch to claim: of each caller in turn. */
  #next(): LeaseRef | undefined {
    for (const [key, theirs] of this.#unclaimed) {
      this.#unclaimed.delete(key);
      const [dispatch] = theirs.values();
      if (!dispatch) continue;
      theirs.delete(dispatch.id);
      if (theirs.size > 0) this.#unclaimed.set(key, theirs);
      return dispatch;
    }
    return undefined;
  }

  #enter(claimed: Claimed): void {
    this.#places.add(this.#handling.ownerOf(claimed), async () => {
      this.#wait(-1);
      if (!this.#isClosed) await this.#handling.run(claimed);
      this.#free();
    });
  }

  #free(): void {
    this.#claimed -= 1;
    this.#fill();
  }

  #wait(more: number): void {
    if (this.#isClosed && more < 0 && this.#waiting === 0) return;
    this.#waiting += more;
    this.#handling.onWaiting(more);
  }
}
