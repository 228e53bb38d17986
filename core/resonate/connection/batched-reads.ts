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
export function batchedReads(client: ReadClient): Pick<Requests, "call"> {
  let waiting: Read[] = [];
  const send = () => {
    sendAll(client, waiting);
    waiting = [];
  };
  return {
    call: (call, signal, retryForMs) => {
      const isRead = call.kind === "promise.get" || call.kind === "promise.register_listener";
      if (!isRead || retryForMs !== undefined || client.readsMany() === false)
        return client.call(call, signal, retryForMs);
      const { promise, resolve, reject } = Promise.withResolvers<PromiseRecord | undefined>();
      if (waiting.length === 0) queueMicrotask(send);
      waiting.push({ call, signal, resolve, reject });
      return promise;
    },
  };
}

function sendAll(client: ReadClient, all: readonly Read[]): void {
  for (let reads = all; reads.length > 0;) {
    const [first] = reads as [Read];
    const alike = reads.filter((read) => isAlike(read, first));
    for (let i = 0; i < alike.length; i += MAX_READS_PER_REQUEST)
      void readTogether(client, alike.slice(i, i + MAX_READS_PER_REQUEST));
    reads = reads.filter((read) => !isAlike(read, first));
  }
}

async function readTogether(client: ReadClient, reads: readonly Read[]): Promise<void> {
  const [{ call, signal }] = reads as [Read];
  if (reads.length === 1 && call.maxValue === undefined) return readEach(client, reads);
  try {
    const data = { ids: reads.map((read) => idOf(read)), address: addressOf(call), maxValue: call.maxValue };
    const results = await client.readMany(data, signal);
    if (!results) return readEach(client, reads);
    for (const [i, result] of results.entries()) {
      const read = reads[i];
      if (result.status === "fulfilled") read?.resolve(result.value);
      else read?.reject(result.reason);
    }
    if (results.length < reads.length) await readTogether(client, reads.slice(results.length));
  } catch (error) {
    for (const { reject } of reads) reject(error);
  }
}

function readEach(client: ReadClient, reads: readonly Read[]): void {
  for (const { call, signal, resolve, reject } of reads) client.call(call, signal).then(resolve, reject);
}

const idOf = ({ call }: Read): string => (call.kind === "promise.get" ? call.data.id : call.data.awaited);

const addressOf = (call: ReadCall): string | undefined => (call.kind === "promise.get" ? undefined : call.data.address);

const isAlike = (a: Read, b: Read): boolean =>
  a.signal === b.signal && a.call.maxValue === b.call.maxValue && addressOf(a.call) === addressOf(b.call);
