import { LRUCache } from "lru-cache";
import { BESIDES_KINDS, isPaused, PausedJobs, pausedIn } from "../../core/jobs/index.ts";
import type { PromiseRecord, ResonateClient } from "../../core/resonate/index.ts";

/** How long the answer whether a kind is paused is reused: at most in milliseconds, and as a share of the lease. */
const MAX_REUSE_MS = 5_000;
const REUSE_SHARE = 1 / 3;

/** How many kinds are remembered. */
const MAX_KINDS = 1_000;

/** Knows which jobs operators have paused, as of a few seconds ago. */
export class Pauses {
  /** By kind. */
  readonly #pauses: LRUCache<string, { pause: PromiseRecord | undefined }>;

  /** `leaseTimeMs`: the length of a task's lease, which is also how long an unreachable server is retried. */
  constructor(client: ResonateClient, namespace: string, leaseTimeMs: number) {
    const jobs = new PausedJobs(client, namespace);
    this.#pauses = new LRUCache({
      max: MAX_KINDS,
      ttl: Math.min(MAX_REUSE_MS, Math.ceil(REUSE_SHARE * leaseTimeMs)),
      ignoreFetchAbort: true,
      fetchMethod: async (kind) => ({ pause: await jobs.find(kind, leaseTimeMs) }),
    });
  }

  /** The id of the promise that is pending while a job is paused; undefined if it is not. `job`: its id without the namespace. */
  async find(job: string, kind: string): Promise<string | undefined> {
    const [ofKind, besides] = await Promise.all([this.#pauses.fetch(kind), this.#pauses.fetch(BESIDES_KINDS)]);
    if (ofKind?.pause) return ofKind.pause.id;
    return besides?.pause && isPaused(pausedIn(besides.pause), job) ? besides.pause.id : undefined;
  }

  /** Forgets the answers for jobs of a kind. */
  forget(kind: string): void {
    this.#pauses.delete(kind);
    this.#pauses.delete(BESIDES_KINDS);
  }
}
