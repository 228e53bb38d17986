import PQueue from "p-queue";

/**
 * Fair turns by owner, for a queue with priorities such as `p-queue`: an owner's first task waits for at most one task of each
 * other owner, and not for all tasks that another owner queued before.
 */
export class Turns {
  #now = 0;
  /** By owner: the turn of the last task that was queued for it. */
  readonly #last = new Map<string, number>();

  /** The priority of this owner's next task: higher goes first. */
  next(owner: string): number {
    const turn = Math.max(this.#now, this.#last.get(owner) ?? 0) + 1;
    this.#last.set(owner, turn);
    return -turn;
  }

  /** Called when the task that was queued with this priority begins. */
  began(priority: number): void {
    if (-priority <= this.#now) return;
    this.#now = -priority;
    // An owner whose last turn is over starts from the current turn again.
    for (const [owner, turn] of this.#last) if (turn <= this.#now) this.#last.delete(owner);
  }
}

/** The largest share of the slots for one caller's jobs, so that long jobs of one caller do not block the others. */
const MAX_OWNER_SHARE = 0.75;

/** The slots in which jobs of one kind execute. Callers take turns, and none takes all slots. */
export class Slots {
  readonly #queue: PQueue;
  readonly #turns = new Turns();
  readonly #mostPerOwner: number;
  readonly #running = new Map<string, number>();
  /** Jobs whose turn came while their caller had its full share; each starts when another job of that caller ends. */
  readonly #deferred = new Map<string, (() => Promise<void>)[]>();
  #isDraining = false;

  constructor(count: number) {
    this.#queue = new PQueue({ concurrency: count });
    this.#mostPerOwner = Math.max(1, Math.ceil(count * MAX_OWNER_SHARE));
  }

  /** Runs a job of `owner` in its turn; `owner` is empty where callers are not told apart. `run` must not reject. */
  add(owner: string, run: () => Promise<void>): void {
    const priority = this.#turns.next(owner);
    void this.#queue.add(() => this.#run(owner, priority, run), { priority });
  }

  /** Runs all waiting jobs, with `more` additional slots; resolves when no job runs any more. */
  async drain(more: number): Promise<void> {
    this.#isDraining = true;
    this.#queue.concurrency += more;
    for (const [owner, runs] of this.#deferred) for (const run of runs.splice(0)) this.add(owner, run);
    await this.#queue.onIdle();
  }

  async #run(owner: string, priority: number, run: () => Promise<void>): Promise<void> {
    this.#turns.began(priority);
    const running = this.#running.get(owner) ?? 0;
    if (owner !== "" && running >= this.#mostPerOwner && !this.#isDraining) {
      this.#deferred.set(owner, [...(this.#deferred.get(owner) ?? []), run]);
      return;
    }
    this.#running.set(owner, running + 1);
    try {
      await run();
    } finally {
      const left = (this.#running.get(owner) ?? 1) - 1;
      if (left > 0) this.#running.set(owner, left);
      else this.#running.delete(owner);
      const next = this.#deferred.get(owner)?.shift();
      if (next) this.add(owner, next);
      else this.#deferred.delete(owner);
    }
  }
}
