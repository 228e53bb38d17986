/** What operators pause: the jobs of a kind, and besides kinds all jobs, those of a caller, or single jobs. */
import { childOf, decodeValue, getOf, resolveOf } from "../resonate/codec.ts";
import type { ResonateClient } from "../resonate/connection/client.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { pauseId, splitKey } from "../resonate/ids.ts";
import { append, last } from "../resonate/sequence.ts";

/** How long a pause may last, in milliseconds: ten years. */
const MAX_PAUSE_MS = 10 * 366 * 86_400_000;

/** Takes the place of the kind, for what is paused besides kinds; no kind can have this name. */
export const BESIDES_KINDS = "*";

/** The jobs besides those of paused kinds that no worker takes. `callers` are keys; `jobs` are promise ids without the namespace. */
export interface Paused {
  all?: boolean;
  callers: readonly string[];
  jobs: readonly string[];
}

export const NOTHING_PAUSED: Paused = { callers: [], jobs: [] };

export const isPaused = ({ all, callers, jobs }: Paused, job: string): boolean =>
  all === true || jobs.includes(job) || callers.includes(splitKey(job).key);

/** What a pause of {@link BESIDES_KINDS} pauses; nothing for the pause of a kind. */
export const pausedIn = (pause: PromiseRecord | undefined): Paused =>
  (pause && (decodeValue(pause.param) as Paused | undefined)) ?? NOTHING_PAUSED;

const isPending = ({ state }: PromiseRecord): boolean => state === "pending";

/**
 * The pauses of a kind, or of {@link BESIDES_KINDS}, are a sequence of promises, each pending while its pause lasts. Paused
 * jobs wait for its end, and then read the next.
 */
export class PausedJobs {
  readonly #client: Pick<ResonateClient, "call">;
  readonly #namespace: string;
  /** By kind: how many pauses came before the last known one. */
  readonly #pausesBefore = new Map<string, number>();

  constructor(client: Pick<ResonateClient, "call">, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The promise that is pending while jobs of this kind are paused; undefined when they are not. */
  async find(kind: string, timeoutMs?: number): Promise<PromiseRecord | undefined> {
    return (await this.#last(kind, timeoutMs)).pause;
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

  /** What is paused besides kinds. */
  async besidesKinds(): Promise<Paused> {
    return pausedIn(await this.find(BESIDES_KINDS));
  }

  /** Pauses exactly this besides kinds. Calls must not overlap. */
  async pauseBesidesKinds(paused: Paused): Promise<void> {
    const { n, pause } = await this.#last(BESIDES_KINDS);
    const isAny = paused.all || paused.callers.length + paused.jobs.length > 0;
    if (isAny) await this.#create(BESIDES_KINDS, n + 1, paused);
    await this.#end(BESIDES_KINDS, n, pause);
  }

  async #last(kind: string, timeoutMs?: number) {
    const known = (this.#pausesBefore.get(kind) ?? 0) + 1;
    const pause = await this.#get(kind, known, timeoutMs);
    // Most kinds have never been paused.
    if (!pause && known === 1) return { n: 0, pause: undefined };
    const get = (n: number) => this.#get(kind, n, timeoutMs);
    // A server that was restored to an earlier state lacks the last known pause, and perhaps others.
    const { n, entry } = await (pause ? last(get, { after: known, entry: pause }) : last(get));
    this.#pausesBefore.set(kind, Math.max(n - 1, 0));
    return { n, pause: entry && isPending(entry) ? entry : undefined };
  }

  async #create(kind: string, n: number, param?: Paused): Promise<PromiseRecord> {
    const call = childOf(pauseId(this.#namespace, kind, n), Date.now() + MAX_PAUSE_MS, { param });
    return (await this.#client.call(call)) as PromiseRecord;
  }

  /** Ends the `n`th pause, and those before it that a call of {@link pauseBesidesKinds} which was interrupted has left pending. */
  async #end(kind: string, n: number, pause: PromiseRecord | undefined): Promise<void> {
    for (let i = n, each = pause; each && isPending(each); each = await this.#get(kind, --i)) {
      await this.#client.call(resolveOf(each.id));
    }
  }

  #get(kind: string, n: number, timeoutMs?: number): Promise<PromiseRecord | undefined> {
    return this.#client.call(getOf(pauseId(this.#namespace, kind, n)), undefined, timeoutMs);
  }
}
