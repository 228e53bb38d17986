import { LRUCache } from "lru-cache";
import type { LeaseRef } from "../../core/resonate/connection/protocol.ts";

/** How many unhandled tasks are remembered, and for how long after their last release, in milliseconds. */
const REMEMBERED = { max: 10_000, ttl: 10 * 60_000 };

/** The pauses before an unhandled task is claimed again, in milliseconds. They double, and half of each is random. */
const PAUSE = { first: 200, longest: 60_000 };

/**
 * Tasks that this worker has no function for, which it learns only by claiming them. It releases such a task, and the server
 * dispatches it again at once, to another worker or to this one. Repeated dispatches to this worker are held back for a
 * pause, without a lease. Then the task is claimed and released again, which moves it to another worker of the group.
 */
export class UnhandledTasks {
  readonly #pauses = new LRUCache<string, number>(REMEMBERED);
  /** The newest dispatch of each task that is held back. */
  readonly #heldBack = new Map<string, { dispatch: LeaseRef; timer: NodeJS.Timeout }>();
  readonly #claim: (dispatch: LeaseRef) => void;

  constructor(claim: (dispatch: LeaseRef) => void) {
    this.#claim = claim;
  }

  /** Holds a dispatch back if its task was released recently; returns whether it does. */
  holdBack(dispatch: LeaseRef): boolean {
    const { id } = dispatch;
    const heldBack = this.#heldBack.get(id);
    if (heldBack) {
      heldBack.dispatch = dispatch;
      return true;
    }
    const pause = this.#pauses.get(id);
    if (pause === undefined) return false;
    const timer = setTimeout(() => this.#pauseOver(id), pause * (0.5 + Math.random() / 2));
    this.#heldBack.set(id, { dispatch, timer });
    return true;
  }

  /** Records that a claimed task has no function here; returns whether this is the first time. */
  record(id: string): boolean {
    const before = this.#pauses.get(id);
    this.#pauses.set(id, before === undefined ? PAUSE.first : Math.min(2 * before, PAUSE.longest));
    return before === undefined;
  }

  close(): void {
    for (const { timer } of this.#heldBack.values()) clearTimeout(timer);
    this.#heldBack.clear();
  }

  #pauseOver(id: string): void {
    const heldBack = this.#heldBack.get(id);
    this.#heldBack.delete(id);
    if (heldBack) this.#claim(heldBack.dispatch);
  }
}
