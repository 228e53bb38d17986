import { LRUCache } from "lru-cache";
import { Journal, type JournalRecord } from "../../core/engine/journal.ts";
import type { LeaseRef } from "../../core/store/protocol.ts";
import type { Newest } from "./reporter.ts";

/** How much of what jobs have done is kept in memory for the next time that they run here, in bytes, where nothing else is said. */
const MAX_SIZE = 64_000_000;

/** What a worker remembers of a job between two runs of it. */
export interface Remembered {
  history: Journal;
  journal: Newest | undefined;
  /** What the attempt before had done. */
  memo?: ReadonlyMap<string, JournalRecord>;
}

/** What jobs that sleep have done: records never change, so that what was read once need not be read again. */
export class JournalCache {
  readonly #jobs: LRUCache<string, Remembered>;

  constructor(maxSize = MAX_SIZE) {
    this.#jobs = new LRUCache({ maxSize, sizeCalculation: ({ history }) => 500 + history.size });
  }

  /** Takes out what is remembered of a job. */
  take(id: string): Remembered {
    const remembered = this.#jobs.get(id) ?? { history: new Journal(), journal: undefined };
    this.#jobs.delete(id);
    return remembered;
  }

  /**
   * From which number on the records of a job are to come with its task, which was dispatched with this version; 0 where all
   * are known, undefined where there are none.
   */
  wanted({ id, version }: LeaseRef): number | undefined {
    if (version === 0) return undefined;
    const history = this.#jobs.peek(id)?.history;
    return history?.version === version ? 0 : (history?.last ?? 0) + 1;
  }

  put(id: string, remembered: Remembered): void {
    this.#jobs.set(id, remembered);
  }
}
