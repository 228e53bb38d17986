/**
 * Turns by owner, for a queue that goes by priorities, such as `p-queue`: whoever has one thing to do waits for one of each
 * of the others at most, and not for all that somebody queued before.
 *
 * With `p-queue`: `queue.add(() => turns.begin(priority, ask), { priority })`, the owner being that of the step.
 *
 * @example
 * const turns = new Turns();
 * const hers = [turns.next("ada"), turns.next("ada")];
 * const his = turns.next("bob"); // as high as her first, and higher than her second
 * const answer = turns.begin(his, () => "what he asked for");
 */
export class Turns {
  #now = 0;
  /** By owner: the turn of the last thing that was queued for it. */
  readonly #last = new Map<string, number>();

  /** The priority of the next thing of this owner's: higher goes first. */
  next(owner: string): number {
    const turn = Math.max(this.#now, this.#last.get(owner) ?? 0) + 1;
    this.#last.set(owner, turn);
    return -turn;
  }

  /** Runs what was queued with this priority. */
  begin<T>(priority: number, run: () => T): T {
    if (-priority > this.#now) {
      this.#now = -priority;
      // Whose last turn is over is as good as new.
      for (const [owner, turn] of this.#last) if (turn <= this.#now) this.#last.delete(owner);
    }
    return run();
  }
}
