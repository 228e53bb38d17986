import { LRUCache } from "lru-cache";
import type { LeaseRef } from "../../core/store/protocol.ts";

/** Of how many tasks it is remembered that there is no code for them here. */
const REMEMBERED = 10_000;

/** For how long since it was let go last, in milliseconds. */
const FOR = 10 * 60_000;

/** The pauses before such a task is claimed and let go again, in milliseconds: they double, and half of each is random. */
const PAUSE = { first: 200, longest: 60_000 };

/**
 * Tasks that this worker has no code for, which it learns when it has claimed them. It lets go of each, and the server
 * offers it at once, to another worker or to this one again. Only then it is left alone for a while: nobody has a lease on
 * it meanwhile, and after the pause it is claimed and let go once more, which moves it on to another worker of the group.
 */
export class UnhandledTasks {
  readonly #pauses = new LRUCache<string, number>({ max: REMEMBERED, ttl: FOR });
  /** What is left alone at the moment: the newest dispatch of each. */
  readonly #waiting = new Map<string, { dispatch: LeaseRef; timer: NodeJS.Timeout }>();
  readonly #claim: (dispatch: LeaseRef) => void;

  /** `claim` takes the task that a dispatch is of, when its pause is over. */
  constructor(claim: (dispatch: LeaseRef) => void) {
    this.#claim = claim;
  }

  /** Whether a dispatch is kept back, because its task was let go not long ago. */
  keeps(dispatch: LeaseRef): boolean {
    const { id } = dispatch;
    const waiting = this.#waiting.get(id);
    if (waiting) {
      waiting.dispatch = dispatch;
      return true;
    }
    const pause = this.#pauses.get(id);
    if (pause === undefined) return false;
    const timer = setTimeout(() => this.#end(id), pause * (0.5 + Math.random() / 2));
    this.#waiting.set(id, { dispatch, timer });
    return true;
  }

  /** There is no code for this task here. Whether that is news. */
  meet(id: string): boolean {
    const before = this.#pauses.get(id);
    this.#pauses.set(id, before === undefined ? PAUSE.first : Math.min(2 * before, PAUSE.longest));
    return before === undefined;
  }

  /** Claims nothing more. */
  close(): void {
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
  }

  #end(id: string): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting) this.#claim(waiting.dispatch);
  }
}
