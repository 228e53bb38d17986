import { LRUCache } from "lru-cache";
import { type Held, Holds, isHeld } from "../../core/jobs/operating/holds.ts";
import { PausedKinds } from "../../core/jobs/starting/paused-kinds.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import type { LeaseRef } from "../../core/store/connection/protocol.ts";
import { localId } from "../../core/store/ids.ts";

/** How long the answer whether a kind is paused is reused, in milliseconds: at most, and as a part of the lease. */
const REUSED_FOR = { most: 5_000, part: 1 / 3 };

/** In place of a kind: what is held beside kinds. */
const HELD = "";

/** The promise that is pending for as long as jobs are held back, and which ones; all of a paused kind. */
interface Paused {
  id: string;
  held?: Held;
}

/**
 * Suspends jobs of paused kinds, and jobs that an operator holds back otherwise. Each waits for the promise of that pause, so
 * the server wakes all of them when it is over. Until then a paused job holds no lease and costs no request.
 */
export class Pauses {
  readonly #client: ResonateClient;
  readonly #namespace: string;
  readonly #lease: number;
  /** By kind. */
  readonly #pauses: LRUCache<string, { paused: Paused | undefined }>;

  /** `lease`: that of tasks, in milliseconds. For so long an unreachable server is retried. */
  constructor(client: ResonateClient, namespace: string, lease: number) {
    this.#client = client;
    this.#namespace = namespace;
    this.#lease = lease;
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

  /** The promise that is pending for as long as a job is paused; undefined where it is not. `job`: its id without the namespace. */
  async find(job: string, kind: string): Promise<string | undefined> {
    const [ofKind, others] = await Promise.all([this.#pauses.fetch(kind), this.#pauses.fetch(HELD)]);
    const held = others?.paused?.held && isHeld(others.paused.held, job);
    return ofKind?.paused?.id ?? (held ? others?.paused?.id : undefined);
  }

  /** Suspends a task if it is paused; resolves with whether it is suspended, which ends the lease on it. */
  async suspendIfPaused({ id, version }: LeaseRef, kind: string): Promise<boolean> {
    for (;;) {
      const awaited = await this.find(localId(id, this.#namespace), kind);
      if (awaited === undefined) return false;
      const actions = [{ kind: "promise.register_callback" as const, data: { awaited, awaiter: id } }];
      const options = { origin: id, patience: this.#lease };
      const { status } = await this.#client.send("task.suspend", { id, version, actions }, options);
      if (status !== 300) return true;
      // That pause is over. Another may have begun.
      this.#pauses.delete(kind);
      this.#pauses.delete(HELD);
    }
  }
}
