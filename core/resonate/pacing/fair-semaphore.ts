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
