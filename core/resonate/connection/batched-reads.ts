/** Sends reads of promises that begin together as one request, if the server offers that. */
import type { Call, Requests } from "./client.ts";
import type { PromiseRecord } from "./protocol.ts";

/** The most promises that one request reads. */
const MAX_READS_PER_REQUEST = 100;

type ReadCall = Extract<Call, { kind: "promise.get" | "promise.register_listener" }>;

type ReadClient = Pick<Requests, "call" | "readMany" | "readsMany">;

interface Read {
  call: ReadCall;
  signal: AbortSignal | undefined;
  resolve(record: PromiseRecord | undefined): void;
  reject(reason: unknown): void;
}

/** For one request of a caller, or for one object: others share no promises. */
export class BatchedReads {
  readonly #client: ReadClient;
  #waiting: Read[] = [];

  constructor(client: ReadClient) {
    this.#client = client;
  }

  readonly call: Requests["call"] = (call, signal, retryForMs) => {
    const isRead = call.kind === "promise.get" || call.kind === "promise.register_listener";
    if (!isRead || retryForMs !== undefined || this.#client.readsMany() === false)
      return this.#client.call(call, signal, retryForMs);
    const { promise, resolve, reject } = Promise.withResolvers<PromiseRecord | undefined>();
    if (this.#waiting.length === 0) queueMicrotask(() => this.#send());
    this.#waiting.push({ call, signal, resolve, reject });
    return promise;
  };

  #send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let reads = waiting; reads.length > 0;) {
      const [first] = reads as [Read];
      const alike = reads.filter((read) => isAlike(read, first));
      for (let i = 0; i < alike.length; i += MAX_READS_PER_REQUEST)
        void this.#read(alike.slice(i, i + MAX_READS_PER_REQUEST));
      reads = reads.filter((read) => !isAlike(read, first));
    }
  }

  async #read(reads: readonly Read[]): Promise<void> {
    const [{ call, signal }] = reads as [Read];
    if (reads.length === 1 && call.maxValue === undefined) return this.#readEach(reads);
    try {
      const data = { ids: reads.map((read) => idOf(read)), address: addressOf(call), maxValue: call.maxValue };
      const results = await this.#client.readMany(data, signal);
      if (!results) return this.#readEach(reads);
      for (const [i, result] of results.entries()) {
        const read = reads[i];
        if (result.status === "fulfilled") read?.resolve(result.value);
        else read?.reject(result.reason);
      }
      if (results.length < reads.length) await this.#read(reads.slice(results.length));
    } catch (error) {
      for (const { reject } of reads) reject(error);
    }
  }

  #readEach(reads: readonly Read[]): void {
    for (const { call, signal, resolve, reject } of reads) this.#client.call(call, signal).then(resolve, reject);
  }
}

const idOf = ({ call }: Read): string => (call.kind === "promise.get" ? call.data.id : call.data.awaited);

const addressOf = (call: ReadCall): string | undefined => (call.kind === "promise.get" ? undefined : call.data.address);

const isAlike = (a: Read, b: Read): boolean =>
  a.signal === b.signal && a.call.maxValue === b.call.maxValue && addressOf(a.call) === addressOf(b.call);
