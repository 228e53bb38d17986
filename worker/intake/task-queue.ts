import PQueue from "p-queue";
import type { LeaseRef } from "../../core/resonate/connection/protocol.ts";
import { Slots } from "../../core/resonate/pacing/slots.ts";

/** How many tasks of a kind are claimed at the same time. */
const CLAIMS = 32;

/** How many waiting tasks are skipped at once when the queue is closed. */
const SKIPS = 32;

/** How a queue claims and runs tasks. None of these may throw or reject. */
interface TaskHandler<Claimed> {
  /** Takes the lease on a task; undefined when another worker has it, or its job has ended. */
  claim(dispatch: LeaseRef): Promise<Claimed | undefined>;
  run(claimed: Claimed): Promise<void>;
  /** How many tasks may be claimed and unfinished at the same time. */
  most(): number;
  /** Reports by how many the waiting tasks have increased; negative for a decrease. */
  onWaiting(more: number): void;
}

/**
 * The tasks of one kind of job in a worker. They are claimed as soon as they are dispatched, up to a limit, because the server
 * dispatches an unclaimed task again and again. Claimed tasks wait here for a slot. Tasks beyond the limit stay unclaimed, so
 * that another worker can take them. Callers take turns, both for claims and for slots.
 */
export class TaskQueue<Claimed extends { readonly owner: string }> {
  readonly #handler: TaskHandler<Claimed>;
  readonly #slots: Slots;
  readonly #claims = new PQueue({ concurrency: CLAIMS });
  /** Dispatches to claim, by caller and task: the newest of each task. */
  readonly #unclaimed = new Map<string, Map<string, LeaseRef>>();
  #waiting = 0;
  #claimed = 0;
  #isClosed = false;

  /** `slots`: how many tasks run at once. */
  constructor(slots: number, handler: TaskHandler<Claimed>) {
    this.#handler = handler;
    this.#slots = new Slots(slots);
  }

  /**
   * `key` is the caller's, as far as the task's id names one. `isOld`: the dispatch came some time ago, so that one that has come
   * since then takes precedence.
   */
  add(dispatch: LeaseRef, key: string, isOld = false): void {
    if (this.#isClosed) return;
    const theirs = this.#unclaimed.get(key) ?? new Map<string, LeaseRef>();
    this.#unclaimed.set(key, theirs);
    if (!theirs.has(dispatch.id)) this.#wait(1);
    else if (isOld) return;
    theirs.set(dispatch.id, dispatch);
    this.#claimMore();
  }

  /** Claims and starts nothing more; resolves when the running tasks have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wait(-this.#waiting);
    this.#unclaimed.clear();
    await this.#claims.onIdle();
    await this.#slots.drain(SKIPS);
  }

  #claimMore(): void {
    while (this.#claimed < this.#handler.most()) {
      const dispatch = this.#next();
      if (!dispatch) return;
      this.#claimed += 1;
      void this.#claims.add(async () => {
        const claimed = this.#isClosed ? undefined : await this.#handler.claim(dispatch);
        const run = async () => {
          this.#wait(-1);
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

  #wait(more: number): void {
    if (this.#isClosed && more < 0 && this.#waiting === 0) return;
    this.#waiting += more;
    this.#handler.onWaiting(more);
  }
}
