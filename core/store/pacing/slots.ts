import PQueue from "p-queue";
import { Turns } from "./fair-semaphore.ts";

/** The largest share of the slots that jobs of one caller take, so that long jobs do not keep all others out. */
const SHARE = 0.75;

/** The slots in which jobs of one kind execute. Callers take turns, and none takes all. */
export class Slots {
  readonly #queue: PQueue;
  readonly #turns = new Turns();
  readonly #most: number;
  readonly #running = new Map<string, number>();
  /** Jobs that have had their turn and wait for another job of their caller to end. */
  readonly #back = new Map<string, (() => Promise<void>)[]>();
  #isDraining = false;

  constructor(count: number) {
    this.#queue = new PQueue({ concurrency: count });
    this.#most = Math.max(1, Math.ceil(count * SHARE));
  }

  /** Runs a job in its owner's turn; the owner is empty where callers are not told apart. `run` must not reject. */
  add(owner: string, run: () => Promise<void>): void {
    const priority = this.#turns.next(owner);
    void this.#queue.add(() => this.#turns.begin(priority, () => this.#run(owner, run)), { priority });
  }

  /** Lets waiting jobs begin, `more` at a time, to be handed back; resolves when nothing runs any more. */
  async drain(more: number): Promise<void> {
    this.#isDraining = true;
    this.#queue.concurrency += more;
    for (const [owner, runs] of this.#back) for (const run of runs.splice(0)) this.add(owner, run);
    await this.#queue.onIdle();
  }

  async #run(owner: string, run: () => Promise<void>): Promise<void> {
    const running = this.#running.get(owner) ?? 0;
    if (owner !== "" && running >= this.#most && !this.#isDraining) {
      this.#back.set(owner, [...(this.#back.get(owner) ?? []), run]);
      return;
    }
    this.#running.set(owner, running + 1);
    try {
      await run();
    } finally {
      const left = (this.#running.get(owner) ?? 1) - 1;
      if (left > 0) this.#running.set(owner, left);
      else this.#running.delete(owner);
      const next = this.#back.get(owner)?.shift();
      if (next) this.add(owner, next);
      else this.#back.delete(owner);
    }
  }
}
