import { LRUCache } from "lru-cache";
import type { LeaseRef } from "../../core/resonate/index.ts";

/** How many unhandled tasks are remembered, and for how long after their last release. */
const MAX_REMEMBERED_TASKS = 10_000;
const MEMORY_MS = 10 * 60_000;

/** The first pause before an unhandled task is claimed again, and the longest. They double, and half of each is random. */
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 60_000;

/**
 * Tasks that this worker has no function for, which it learns only by claiming them. It releases such a task, and the server
 * dispatches it again at once, to another worker or to this one. Repeated dispatches to this worker are postponed, without a
 * lease. Then the task is claimed and released again, which moves it to another worker of the group.
 */
export class UnhandledTasks {
  readonly #pauses = new LRUCache<string, number>({ max: MAX_REMEMBERED_TASKS, ttl: MEMORY_MS });
  /** The newest dispatch of each postponed task. */
  readonly #postponed = new Map<string, { dispatch: LeaseRef; timer: NodeJS.Timeout }>();
  readonly #claim: (dispatch: LeaseRef) => void;

  constructor(claim: (dispatch: LeaseRef) => void) {
    this.#claim = claim;
  }

  /** Postpones a dispatch if its task was released recently; returns whether it does. */
  postpone(dispatch: LeaseRef): boolean {
    const { id } = dispatch;
    const postponed = this.#postponed.get(id);
    if (postponed) {
      postponed.dispatch = dispatch;
      return true;
    }
    const pause = this.#pauses.get(id);
    if (pause === undefined) return false;
    const timer = setTimeout(() => this.#pauseOver(id), pause * (0.5 + Math.random() / 2));
    this.#postponed.set(id, { dispatch, timer });
    return true;
  }

  /** Records that a claimed task has no function here; returns whether this is the first time. */
  record(id: string): boolean {
    const last = this.#pauses.get(id);
    this.#pauses.set(id, last === undefined ? FIRST_PAUSE_MS : Math.min(2 * last, MAX_PAUSE_MS));
    return last === undefined;
  }

  close(): void {
    for (const { timer } of this.#postponed.values()) clearTimeout(timer);
    this.#postponed.clear();
  }

  #pauseOver(id: string): void {
    const postponed = this.#postponed.get(id);
    this.#postponed.delete(id);
    if (postponed) this.#claim(postponed.dispatch);
  }
}
