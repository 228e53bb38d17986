import { PausedKinds } from "../../core/jobs/paused-kinds.ts";
import type { ResonateClient } from "../../core/store/client.ts";
import type { LeaseRef } from "../../core/store/protocol.ts";

/** How long it is taken for known whether a kind is paused, in milliseconds. */
const KNOWN = 5_000;

/**
 * Puts the jobs of paused kinds to sleep: each is suspended until its kind goes on, and the server wakes all of them then. So
 * a paused job costs nobody anything, survives every restart, and is nobody's until then.
 */
export class Pauses {
  readonly #client: ResonateClient;
  readonly #kinds: PausedKinds;
  readonly #patience: number;
  readonly #known = new Map<string, { at: number; id: Promise<string | undefined> }>();

  /** `patience`: how long the server is asked, in milliseconds. */
  constructor(client: ResonateClient, namespace: string, patience: number) {
    this.#client = client;
    this.#kinds = new PausedKinds(client, namespace);
    this.#patience = patience;
  }

  /** Puts a task to sleep whose kind is paused. Whether it sleeps: it is no longer this worker's then. */
  async holds({ id, version }: LeaseRef, kind: string): Promise<boolean> {
    const awaited = await this.#pauseOf(kind);
    if (awaited === undefined) return false;
    const actions = [{ kind: "promise.register_callback" as const, data: { awaited, awaiter: id } }];
    const options = { origin: id, patience: this.#patience };
    const { status } = await this.#client.send("task.suspend", { id, version, actions }, options);
    if (status === 300) this.#known.delete(kind); // it goes on, since just now
    return status !== 300;
  }

  #pauseOf(kind: string): Promise<string | undefined> {
    const known = this.#known.get(kind);
    if (known && performance.now() - known.at < KNOWN) return known.id;
    const id = this.#kinds.find(kind, this.#patience).then((record) => record?.id);
    this.#known.set(kind, { at: performance.now(), id });
    // What could not be asked is asked again for the next job.
    id.catch(() => this.#known.delete(kind));
    return id;
  }
}
