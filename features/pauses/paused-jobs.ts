/** What operators hold back: the jobs of a kind, and besides kinds all jobs, those of a caller, or single jobs. */
import { childOf, decodeValue, getOf, resolveOf } from "../../core/resonate/codec.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { pauseId, splitKey } from "../../core/resonate/ids.ts";
import { append, last } from "../../core/resonate/sequence.ts";

/** How long a pause may last, in milliseconds: ten years. */
const LONGEST = 10 * 366 * 86_400_000;

/** Takes the place of the kind, for what is held besides kinds; no kind can have this name. */
export const BESIDES_KINDS = "*";

/** The jobs besides those of paused kinds that no worker takes. `callers` are keys; `jobs` are promise ids without the namespace. */
export interface Held {
  all?: boolean;
  callers: readonly string[];
  jobs: readonly string[];
}

export const NOTHING: Held = { callers: [], jobs: [] };

export const isHeld = ({ all, callers, jobs }: Held, job: string): boolean =>
  all === true || jobs.includes(job) || callers.includes(splitKey(job).key);

/** What a pause of {@link BESIDES_KINDS} holds; nothing for the pause of a kind. */
export const heldIn = (pause: PromiseRecord | undefined): Held =>
  (pause && (decodeValue(pause.param) as Held | undefined)) ?? NOTHING;

const isPending = ({ state }: PromiseRecord): boolean => state === "pending";

/**
 * The pauses of a kind, or of {@link BESIDES_KINDS}, are a sequence of promises, each pending while its pause lasts. Held tasks
 * wait for its end, and then read the next.
 */
export class PausedJobs {
  readonly #client: Pick<ResonateClient, "call">;
  readonly #namespace: string;
  /** By kind: how many pauses came before the last known one. */
  readonly #before = new Map<string, number>();

  constructor(client: Pick<ResonateClient, "call">, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The promise that is pending while jobs of this kind are paused; undefined when they are not. */
  async find(kind: string, patience?: number): Promise<PromiseRecord | undefined> {
    return (await this.#last(kind, patience)).pause;
  }

  /** Pauses a kind, or keeps an existing pause. Returns when the pause began, in milliseconds since the epoch. */
  async pause(kind: string): Promise<number> {
    const { n, pause } = await this.#last(kind);
    if (pause) return pause.createdAt;
    const { entry } = await append((n) => this.#create(kind, n), { after: n, isDone: isPending });
    return entry.createdAt;
  }

  /** Ends the pause of a kind. Returns whether it was paused. */
  async resume(kind: string): Promise<boolean> {
    const { n, pause } = await this.#last(kind);
    await this.#end(kind, n, pause);
    return pause !== undefined;
  }

  async held(): Promise<Held> {
    return heldIn(await this.find(BESIDES_KINDS));
  }

  /** Holds exactly `held`. Calls must not overlap. */
  async hold(held: Held): Promise<void> {
    const { n, pause } = await this.#last(BESIDES_KINDS);
    if (held.all || held.callers.length + held.jobs.length > 0) await this.#create(BESIDES_KINDS, n + 1, held);
    await this.#end(BESIDES_KINDS, n, pause);
  }

  async #last(kind: string, patience?: number) {
    const get = (n: number) => this.#get(kind, n, patience);
    const after = this.#before.get(kind) ?? 0;
    let { n, entry } = await last(get, { after });
    // A server that was restored to an earlier state lacks the last known pause, and perhaps others.
    if (!entry && after > 0) ({ n, entry } = await last(get));
    this.#before.set(kind, Math.max(n - 1, 0));
    return { n, pause: entry && isPending(entry) ? entry : undefined };
  }

  async #create(kind: string, n: number, param?: Held): Promise<PromiseRecord> {
    const call = childOf(pauseId(this.#namespace, kind, n), Date.now() + LONGEST, { param });
    return (await this.#client.call(call)) as PromiseRecord;
  }

  /** Ends the `n`th pause, and those before it that a call of {@link hold} which was interrupted has left pending. */
  async #end(kind: string, n: number, pause: PromiseRecord | undefined): Promise<void> {
    for (let i = n, each = pause; each && isPending(each); each = await this.#get(kind, --i)) {
      await this.#client.call(resolveOf(each.id));
    }
  }

  #get(kind: string, n: number, patience?: number): Promise<PromiseRecord | undefined> {
    return this.#client.call(getOf(pauseId(this.#namespace, kind, n)), undefined, patience);
  }
}
