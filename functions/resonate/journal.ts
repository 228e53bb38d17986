/** Journals and questions of jobs (see `../jobs/journal.ts`), as promises. */
import type { PromiseRecord } from "@resonatehq/sdk";
import { type Answer, Entry, entryId } from "../jobs/journal.ts";
import type { Names } from "./names.ts";
import { childOf, type DurablePromise, decodeValue, encodeValue } from "./promise.ts";
import type { Channel, Wire } from "./wire.ts";

/** An entry of a job's journal: its number, counted from 1, and when it was written; 0 when there is none yet. */
export interface NewestEntry {
  n: number;
  entry: Entry | undefined;
  writtenAt: number;
}

/** Every method throws {@link ResonateUnavailable} when the server cannot be reached or cannot answer. */
export class Journals {
  readonly #wire: Wire;
  readonly #names: Names;

  constructor(wire: Wire, names: Names) {
    this.#wire = wire;
    this.#names = names;
  }

  /** The newest entry of a job's journal. */
  async newestEntry(name: string, signal?: AbortSignal): Promise<NewestEntry> {
    let newest: NewestEntry = { n: 0, entry: undefined, writtenAt: 0 };
    let missing = Number.POSITIVE_INFINITY;
    const origin = this.#names.idOf(name);
    while (origin !== undefined && newest.n + 1 < missing) {
      const n = missing === Number.POSITIVE_INFINITY ? newest.n * 2 || 1 : Math.floor((newest.n + missing) / 2);
      const record = await this.#get(entryId(origin, n), signal);
      if (record?.state === "resolved") {
        newest = { n, entry: Entry.parse(decodeValue(record.value)), writtenAt: record.settledAt ?? 0 };
      } else missing = n;
    }
    return newest;
  }

  /**
   * Writes the `n`th entry of the journal of the promise `promiseId`; one that is written already stays as it is.
   * `timeoutAt` is the promise's.
   */
  async writeEntry(promiseId: string, n: number, entry: Entry, timeoutAt: number): Promise<void> {
    const id = entryId(promiseId, n);
    await this.#wire.call(childOf(promiseId, id, timeoutAt));
    await this.#resolve(id, entry);
  }

  /** Asks for the `n`th entry of a job's journal to be pushed when it is written. Whether it has been already. */
  async listenToEntry(promise: DurablePromise, n: number, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    const origin = this.#names.id(promise.job, promise.name);
    const id = entryId(origin, n);
    await this.#wire.call(childOf(origin, id, promise.timeoutAt), signal);
    return this.#listen(id, channel, signal);
  }

  /** When a question was answered, in milliseconds since the epoch; undefined while it is open. */
  async answeredAt(questionId: string, signal?: AbortSignal): Promise<number | undefined> {
    const record = await this.#get(questionId, signal);
    return record?.state === "pending" ? undefined : (record?.settledAt ?? 0);
  }

  /** Asks for the answer to a question to be pushed. Whether it has been given already. */
  listenToQuestion(questionId: string, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    return this.#listen(questionId, channel, signal);
  }

  /** Answers a question; of several answers the first one counts. */
  answer(questionId: string, answer: Answer): Promise<void> {
    return this.#resolve(questionId, answer);
  }

  #get(id: string, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    return this.#wire.call({ kind: "promise.get", data: { id } }, signal);
  }

  async #resolve(id: string, value: unknown): Promise<void> {
    const data = { id, state: "resolved" as const, value: encodeValue(value) };
    await this.#wire.call({ kind: "promise.settle", data });
  }

  async #listen(id: string, channel: Channel, signal?: AbortSignal): Promise<boolean> {
    const data = { awaited: id, address: channel.address };
    return (await this.#wire.call({ kind: "promise.register_listener", data }, signal))?.state !== "pending";
  }
}
