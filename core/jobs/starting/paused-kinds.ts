import { childOf, encodeValue } from "../../store/codec.ts";
import type { ResonateClient } from "../../store/connection/client.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";
import { pauseId } from "../../store/ids.ts";
import { append, last } from "../../store/sequence.ts";

/** How long a pause may last, in milliseconds: ten years. */
const LONGEST = 10 * 366 * 86_400_000;

const isPending = ({ state }: PromiseRecord): boolean => state === "pending";

/** Pauses kinds of jobs. The pauses of a kind are a sequence of promises, each pending while its pause lasts. */
export class PausedKinds {
  readonly #client: Pick<ResonateClient, "call">;
  readonly #namespace: string;
  /** By kind: how many pauses are known to be over. */
  readonly #over = new Map<string, number>();

  constructor(client: Pick<ResonateClient, "call">, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The promise that is pending while jobs of this kind are paused; undefined when they are not. */
  async find(kind: string, patience?: number): Promise<PromiseRecord | undefined> {
    const get = (n: number) => {
      const data = { id: pauseId(this.#namespace, kind, n) };
      return this.#client.call({ kind: "promise.get", data }, undefined, patience);
    };
    const { n, entry } = await last(get, { after: this.#over.get(kind) ?? 0, isLast: isPending });
    const isPaused = entry !== undefined && isPending(entry);
    this.#over.set(kind, isPaused ? n - 1 : n);
    return isPaused ? entry : undefined;
  }

  /** Pauses a kind, or keeps an existing pause. Returns when the pause began, in milliseconds since the epoch. */
  async pause(kind: string): Promise<number> {
    await this.find(kind);
    const create = async (n: number) => {
      const id = pauseId(this.#namespace, kind, n);
      return (await this.#client.call(childOf(id, Date.now() + LONGEST))) as PromiseRecord;
    };
    const { entry } = await append(create, { after: this.#over.get(kind) ?? 0, isDone: isPending });
    return entry.createdAt;
  }

  /** Ends the pause of a kind. Returns whether it was paused. */
  async resume(kind: string): Promise<boolean> {
    const record = await this.find(kind);
    if (!record) return false;
    const data = { id: record.id, state: "resolved" as const, value: encodeValue(undefined) };
    await this.#client.call({ kind: "promise.settle", data });
    return true;
  }
}
