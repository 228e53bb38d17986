/**
 * Which kinds of jobs are paused. It is kept on the Resonate server: each pause of a kind is a promise that is pending for as
 * long as the pause lasts, `paused:<kind>.1`, `.2`, … without gaps, so that the last of them says how it is.
 */
import type { ResonateClient } from "../store/client.ts";
import { childOf, encodeValue } from "../store/codec.ts";
import type { PromiseRecord } from "../store/protocol.ts";

/** How long a pause may last, in milliseconds: ten years. */
const LONGEST = 10 * 366 * 86_400_000;

export class PausedKinds {
  readonly #client: Pick<ResonateClient, "call">;
  readonly #namespace: string;
  /** Of each kind, the number of the first pause that is not known to be over. */
  readonly #next = new Map<string, number>();

  constructor(client: Pick<ResonateClient, "call">, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The promise that is pending for as long as jobs of this kind are paused; undefined when they are not. */
  async find(kind: string, patience?: number): Promise<PromiseRecord | undefined> {
    for (let n = this.#next.get(kind) ?? 1; ; n++) {
      this.#next.set(kind, n);
      const call = { kind: "promise.get" as const, data: { id: this.#id(kind, n) } };
      const record = await this.#client.call(call, undefined, patience);
      if (record?.state !== "pending" && record) continue;
      return record;
    }
  }

  /** Pauses a kind. Since when it is paused, in milliseconds since the epoch: one that was before stays so. */
  async pause(kind: string): Promise<number> {
    await this.find(kind);
    for (let n = this.#next.get(kind) ?? 1; ; n++) {
      const id = this.#id(kind, n);
      const record = await this.#client.call(childOf(id, id, Date.now() + LONGEST));
      if (record?.state === "pending") return record.createdAt;
    }
  }

  /** Lets a kind go on. Whether it was paused. */
  async resume(kind: string): Promise<boolean> {
    const record = await this.find(kind);
    if (!record) return false;
    const data = { id: record.id, state: "resolved" as const, value: encodeValue(undefined) };
    await this.#client.call({ kind: "promise.settle", data });
    return true;
  }

  #id(kind: string, n: number): string {
    return `${this.#namespace}paused:${kind}.${n}`;
  }
}
