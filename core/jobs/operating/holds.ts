/** What an operator holds back besides kinds: all jobs, those of a caller, or single jobs. */
import { childOf, decodeValue, encodeValue } from "../../store/codec.ts";
import type { ResonateClient } from "../../store/connection/client.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { pauseId, splitKey } from "../../store/ids.ts";
import { last } from "../../store/sequence.ts";

/** How long a hold may last, in milliseconds: ten years. */
const LONGEST = 10 * 366 * 86_400_000;

/** Takes the place of the kind in the ids; no kind can have this name. */
const NAME = "*";

/** The jobs that no worker takes. `callers` are keys of callers; `jobs` are promise ids without the namespace. */
export interface Held {
  all?: boolean;
  callers: readonly string[];
  jobs: readonly string[];
}

export const NOTHING: Held = { callers: [], jobs: [] };

export const isHeld = ({ all, callers, jobs }: Held, job: string): boolean =>
  all === true || jobs.includes(job) || callers.includes(splitKey(job).key);

const isPending = ({ state }: PromiseRecord): boolean => state === "pending";

/** A sequence of promises, each pending while its callers and jobs are held. Held tasks wait for its end, and then read the next. */
export class Holds {
  readonly #client: Pick<ResonateClient, "call">;
  readonly #namespace: string;
  #over = 0;

  constructor(client: Pick<ResonateClient, "call">, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** What is held, and the promise that is pending in the meantime; undefined if nothing is held. */
  async find(patience?: number): Promise<{ id: string; held: Held } | undefined> {
    const { n, entry } = await this.#last(patience);
    this.#over = entry && isPending(entry) ? n - 1 : n;
    return entry && isPending(entry) ? { id: entry.id, held: decodeValue(entry.param) as Held } : undefined;
  }

  /** Holds exactly `held`. Calls must not overlap. */
  async set(held: Held): Promise<void> {
    const { n, entry } = await this.#last();
    const isNothing = !held.all && held.callers.length + held.jobs.length === 0;
    if (!isNothing)
      await this.#client.call(childOf(pauseId(this.#namespace, NAME, n + 1), Date.now() + LONGEST, { param: held }));
    // A call that was interrupted here has left several of them pending.
    for (let i = n, before = entry; before && isPending(before); before = await this.#get(--i)) {
      const data = { id: before.id, state: "resolved" as const, value: encodeValue(undefined) };
      await this.#client.call({ kind: "promise.settle", data });
    }
  }

  #last(patience?: number) {
    return last((n) => this.#get(n, patience), { after: this.#over });
  }

  #get(n: number, patience?: number) {
    const data = { id: pauseId(this.#namespace, NAME, n) };
    return this.#client.call({ kind: "promise.get", data }, undefined, patience);
  }
}
