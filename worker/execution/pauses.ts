import { LRUCache } from "lru-cache";
import type { Lease } from "../../core/engine/runtime.ts";
import { type Held, Holds, isHeld } from "../../core/jobs/operating/holds.ts";
import { PausedKinds } from "../../core/jobs/starting/paused-kinds.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import { localId } from "../../core/store/ids.ts";

/** How long the answer whether a kind is paused is reused: at most in milliseconds, and as a share of the lease. */
const REUSED_FOR = { most: 5_000, part: 1 / 3 };

/** Takes the place of a kind in the cache, for what is held besides kinds. */
const HELD = "";

/** The id of the promise that is pending while jobs are held back. `held`: which ones; undefined for all of a paused kind. */
interface Paused {
  id: string;
  held?: Held;
}

/**
 * Suspends jobs of paused kinds, and other jobs that an operator holds back. Each waits for the promise of its pause, so the
 * server wakes all of them when the pause is over. Until then a paused job holds no lease and, on servers that let a job wait for
 * promises that are not its own, costs no request.
 */
export class Pauses {
  readonly #namespace: string;
  /** By kind. */
  readonly #pauses: LRUCache<string, { paused: Paused | undefined }>;

  /** `lease`: the length of a task's lease, in milliseconds, which is also how long an unreachable server is retried. */
  constructor(client: ResonateClient, namespace: string, lease: number) {
    this.#namespace = namespace;
    const kinds = new PausedKinds(client, namespace);
    const holds = new Holds(client, namespace);
    this.#pauses = new LRUCache({
      max: 1_000,
      ttl: Math.min(REUSED_FOR.most, Math.ceil(REUSED_FOR.part * lease)),
      ignoreFetchAbort: true,
      fetchMethod: async (kind): Promise<{ paused: Paused | undefined }> => ({
        paused: await (kind === HELD ? holds.find(lease) : kinds.find(kind, lease)),
      }),
    });
  }

  /** The id of the promise that is pending while a job is paused; undefined if it is not. `job`: its id without the namespace. */
  async find(job: string, kind: string): Promise<string | undefined> {
    const [ofKind, others] = await Promise.all([this.#pauses.fetch(kind), this.#pauses.fetch(HELD)]);
    const held = others?.paused?.held && isHeld(others.paused.held, job);
    return ofKind?.paused?.id ?? (held ? others?.paused?.id : undefined);
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
      this.#pauses.delete(HELD);
    }
  }
}
