import { LRUCache } from "lru-cache";
import type { Lease } from "../../core/engine/job-lease.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { localId } from "../../core/resonate/ids.ts";
import { BESIDES_KINDS, type Held, heldIn, isHeld, PausedJobs } from "./paused-jobs.ts";

/** How long the answer whether a kind is paused is reused: at most in milliseconds, and as a share of the lease. */
const REUSED_FOR = { most: 5_000, part: 1 / 3 };

/**
 * Suspends jobs of paused kinds, and other jobs that an operator holds back. Each waits for the promise of its pause, so the
 * server wakes all of them when the pause is over. Until then a paused job holds no lease and, on servers that let a job wait for
 * promises that are not its own, costs no request.
 */
export class Pauses {
  readonly #namespace: string;
  /** By kind. */
  readonly #pauses: LRUCache<string, { pause: PromiseRecord | undefined; held: Held }>;

  /** `leaseTime`: the length of a task's lease, in milliseconds, which is also how long an unreachable server is retried. */
  constructor(client: ResonateClient, namespace: string, leaseTime: number) {
    this.#namespace = namespace;
    const paused = new PausedJobs(client, namespace);
    this.#pauses = new LRUCache({
      max: 1_000,
      ttl: Math.min(REUSED_FOR.most, Math.ceil(REUSED_FOR.part * leaseTime)),
      ignoreFetchAbort: true,
      fetchMethod: async (kind) => {
        const pause = await paused.find(kind, leaseTime);
        return { pause, held: heldIn(pause) };
      },
    });
  }

  /** The id of the promise that is pending while a job is paused; undefined if it is not. `job`: its id without the namespace. */
  async find(job: string, kind: string): Promise<string | undefined> {
    const [ofKind, besides] = await Promise.all([this.#pauses.fetch(kind), this.#pauses.fetch(BESIDES_KINDS)]);
    return ofKind?.pause?.id ?? (besides && isHeld(besides.held, job) ? besides.pause?.id : undefined);
  }

  /**
   * Suspends a job if it is paused; resolves with whether it is suspended, which ends the lease on it.
   *
   * @throws {LeaseLost}
   */
  async suspendIfPaused(lease: Pick<Lease, "id" | "suspend">, kind: string): Promise<boolean> {
    for (;;) {
      const awaited = await this.find(localId(lease.id, this.#namespace), kind);
      if (awaited === undefined) return false;
      if (await lease.suspend([awaited])) return true;
      // The pause is over, but another may have begun.
      this.#pauses.delete(kind);
      this.#pauses.delete(BESIDES_KINDS);
    }
  }
}
