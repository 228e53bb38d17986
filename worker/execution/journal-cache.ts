import { LRUCache } from "lru-cache";
import { Journal, type JournalRecord } from "../../core/engine/journal.ts";
import type { LeaseRef, PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import type { LastWritten } from "../../features/progress/reporter.ts";

/** The default bound on memory, in bytes. */
const MAX_SIZE = 64_000_000;

/** What the first run of a job takes over from the attempt that it resumes. */
export interface Resumed {
  /** The steps that are kept of that attempt. */
  memo: ReadonlyMap<string, JournalRecord>;
  /** The arguments of its last run, if that was not the first. */
  args?: unknown;
  /** The seed of that run. */
  seed?: string;
}

/** What is remembered of a job between two executions. */
export interface CachedJob {
  journal: Journal;
  newestEntry: LastWritten | undefined;
  resumed?: Resumed | undefined;
}

type JobPromise = Pick<PromiseRecord, "id" | "createdAt">;

/** The journals of sleeping jobs. Records never change, so a journal that was read once need not be read again. */
export class JournalCache {
  readonly #jobs: LRUCache<string, CachedJob & { createdAt: number }>;

  constructor(maxSize = MAX_SIZE) {
    this.#jobs = new LRUCache({ maxSize, sizeCalculation: ({ journal }) => 500 + journal.size });
  }

  take({ id, createdAt }: JobPromise): CachedJob {
    const cached = this.#jobs.get(id);
    this.#jobs.delete(id);
    // A job that was removed may have been started again under its id.
    return cached?.createdAt === createdAt ? cached : { journal: new Journal(), newestEntry: undefined };
  }

  /**
   * The number from which on the server has to send a job's records with its task, which was dispatched with this version. 0 if
   * all are remembered; undefined for a new task, which has none.
   */
  recordsWanted({ id, version }: LeaseRef): number | undefined {
    if (version === 0) return undefined;
    const journal = this.#jobs.peek(id)?.journal;
    return journal?.version === version ? 0 : (journal?.last ?? 0) + 1;
  }

  put({ id, createdAt }: JobPromise, cached: CachedJob): void {
    this.#jobs.set(id, { ...cached, createdAt });
  }
}
