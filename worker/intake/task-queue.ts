import PQueue from "p-queue";
import type { Observe } from "../../core/jobs/index.ts";
import { type LeaseRef, Slots } from "../../core/resonate/index.ts";

/** How many tasks of a kind are claimed at the same time. */
const MAX_CONCURRENT_CLAIMS = 32;

/** How many waiting tasks are skipped at once when the queue is closed. */
const MAX_CONCURRENT_SKIPS = 32;

/** How a queue claims and runs tasks. None of these may throw or reject. */
export interface TaskHandler<Claimed> {
  /** How many tasks of a kind may be claimed and unfinished at the same time. */
  readonly maxClaimed: number;
  /** Takes the lease on a task of this kind; undefined when another worker has it, or its job has ended. */
  claim(dispatch: LeaseRef, kind: string): Promise<Claimed | undefined>;
  run(claimed: Claimed): Promise<void>;
}

/**
 * The tasks of one kind of job in a worker. They are claimed as soon as they are dispatched, up to a limit, because the server
 * dispatches an unclaimed task again and again. Claimed tasks wait here for a slot. Tasks beyond the limit stay unclaimed, so
 * that another worker can take them. Callers take turns, both for claims and for slots.
 */
export class TaskQueue<Claimed extends { readonly owner: string }> {
  readonly #kind: string;
  readonly #handler: TaskHandler<Claimed>;
  readonly #observe: Observe;
  readonly #slots: Slots;
  readonly #claims = new PQueue({ concurrency: MAX_CONCURRENT_CLAIMS });
  /** Dispatches to claim, by caller and task: the newest of each task. */
  readonly #unclaimed = new Map<string, Map<string, LeaseRef>>();
  #waiting = 0;
  #claimed = 0;
  #isClosed = false;

  /** `slots`: how many tasks run at once. */
  constructor(kind: string, slots: number, handler: TaskHandler<Claimed>, observe: Observe) {
    this.#kind = kind;
    this.#handler = handler;
    this.#observe = observe;
    this.#slots = new Slots(slots);
  }

  /**
   * `key` is the caller's, as far as the task's id names one. `isOld`: the dispatch came some time ago, so that one that has come
   * since then takes precedence.
   */
  add(dispatch: LeaseRef, key: string, isOld = false): void {
    if (this.#isClosed) return;
    const dispatches = this.#unclaimed.get(key) ?? new Map<string, LeaseRef>();
    this.#unclaimed.set(key, dispatches);
    if (!dispatches.has(dispatch.id)) this.#count(1);
    else if (isOld) return;
    dispatches.set(dispatch.id, dispatch);
    this.#claimMore();
  }

  /** Claims and starts nothing more; resolves when the running tasks have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#count(-this.#waiting);
    this.#unclaimed.clear();
    await this.#claims.onIdle();
    await this.#slots.drain(MAX_CONCURRENT_SKIPS);
  }

  #claimMore(): void {
    while (this.#claimed < this.#handler.maxClaimed) {
      const dispatch = this.#next();
      if (!dispatch) return;
      this.#claimed += 1;
      void this.#claims.add(async () => {
        const claimed = this.#isClosed ? undefined : await this.#handler.claim(dispatch, this.#kind);
        const run = async () => {
          this.#count(-1);
          if (claimed && !this.#isClosed) await this.#handler.run(claimed);
          this.#claimed -= 1;
          this.#claimMore();
        };
        if (claimed && !this.#isClosed) this.#slots.add(claimed.owner, run);
        else await run();
      });
    }
  }

  /** The next dispatch to claim; callers take turns. */
  #next(): LeaseRef | undefined {
    for (const [key, dispatches] of this.#unclaimed) {
      this.#unclaimed.delete(key);
      const [dispatch] = dispatches.values();
      if (!dispatch) continue;
      dispatches.delete(dispatch.id);
      if (dispatches.size > 0) this.#unclaimed.set(key, dispatches);
      return dispatch;
    }
    return undefined;
  }

  /** Counts the waiting tasks. */
  #count(change: number): void {
    if (this.#isClosed && change < 0 && this.#waiting === 0) return;
    this.#waiting += change;
    void this.#observe({ type: "queued", kind: this.#kind, change });
  }
}
