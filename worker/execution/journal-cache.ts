import { LRUCache } from "lru-cache";
import { Journal, readNewest } from "../../core/engine/index.ts";
import type { JobMemory, JobTask } from "../../core/jobs/index.ts";
import type { LeaseRef, PromiseRecord } from "../../core/resonate/index.ts";

/** The default bound on memory. */
const MAX_BYTES = 64_000_000;

/** The memory of a job besides its records. */
const JOB_BYTES = 500;

/** The journals of sleeping jobs. Records never change, so a journal that was read once need not be read again. */
export class JournalCache {
  readonly #jobs: LRUCache<string, { memory: JobMemory; createdAt: number }>;

  constructor(maxBytes = MAX_BYTES) {
    this.#jobs = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ memory }) => JOB_BYTES + memory.journal.size,
    });
  }

  /** Takes the memory of a job, with its journal as the server has it. @throws {LeaseLost} */
  async read({ promise, lease }: Pick<JobTask, "promise" | "lease">): Promise<JobMemory> {
    const known = this.#jobs.get(promise.id);
    this.#jobs.delete(promise.id);
    // A job that was removed may have been started again under its id.
    const memory = known?.createdAt === promise.createdAt ? known.memory : { journal: new Journal() };
    const { version } = lease;
    if (version > 1 && memory.journal.version !== version - 1) {
      memory.journal = await readNewest(
        memory.journal,
        promise.id,
        (id) => lease.get(id),
        (id, n) => lease.record(id, n),
      );
    }
    lease.journal = memory.journal;
    return memory;
  }

  /**
   * The number from which on the server has to send a job's records with its task, which was dispatched with this version. 0 if
   * all are remembered; undefined for a new task, which has none.
   */
  recordsWanted({ id, version }: LeaseRef): number | undefined {
    if (version === 0) return undefined;
    const journal = this.#jobs.peek(id)?.memory.journal;
    return journal?.version === version ? 0 : (journal?.last ?? 0) + 1;
  }

  put({ id, createdAt }: Pick<PromiseRecord, "id" | "createdAt">, memory: JobMemory): void {
    this.#jobs.set(id, { memory, createdAt });
  }
}
