import { LRUCache } from "lru-cache";
import { PausedKinds } from "../../core/jobs/starting/paused-kinds.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import type { LeaseRef } from "../../core/store/connection/protocol.ts";

/** How long the answer whether a kind is paused is reused, in milliseconds. */
const REUSED_FOR = 5_000;

/**
 * Suspends jobs of paused kinds. Each waits for the promise of its kind's pause, so the server wakes all of them when the kind
 * resumes. Until then a paused job holds no lease and costs no request.
 */
export class Pauses {
  readonly #client: ResonateClient;
  readonly #patience: number;
  /** By kind: the id of the promise that is pending while the kind is paused. */
  readonly #pauses: LRUCache<string, { id: string | undefined }>;

  /** `patience`: how long an unreachable server is retried, in milliseconds. */
  constructor(client: ResonateClient, namespace: string, patience: number) {
    this.#client = client;
    this.#patience = patience;
    const kinds = new PausedKinds(client, namespace);
    this.#pauses = new LRUCache({
      max: 1_000,
      ttl: REUSED_FOR,
      ignoreFetchAbort: true,
      fetchMethod: async (kind) => ({ id: (await kinds.find(kind, patience))?.id }),
    });
  }

  /** Suspends a task if its kind is paused; resolves with whether it is suspended, which ends the lease on it. */
  async suspendIfPaused({ id, version }: LeaseRef, kind: string): Promise<boolean> {
    const awaited = (await this.#pauses.fetch(kind))?.id;
    if (awaited === undefined) return false;
    const actions = [{ kind: "promise.register_callback" as const, data: { awaited, awaiter: id } }];
    const options = { origin: id, patience: this.#patience };
    const { status } = await this.#client.send("task.suspend", { id, version, actions }, options);
    const isResumed = status === 300;
    if (isResumed) this.#pauses.delete(kind);
    return !isResumed;
  }
}
