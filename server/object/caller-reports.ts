/** Reports to the account's caller objects which of their jobs have finished, and which jobs durable functions started for them. */
import { REQUEST_TAG } from "../../core/author/index.ts";
import { callersOf, type ReportedJob } from "../../core/jobs/index.ts";
import {
  CALLER_ROLE,
  isRoot,
  type Locatable,
  localId,
  methodsInRole,
  type ObjectCalls,
  objectName,
  type PromiseRecord,
  type ResonateClient,
  sizeOf,
  splitKey,
} from "../../core/resonate/index.ts";
import { type Change, promiseRecord, type StoredPromise } from "../engine/records.ts";

/**
 * The largest promise that is sent in full, and how much of them waits in full for one caller's object. Of others the id is sent,
 * and the object reads them: this server has 128 MB of memory, and one call accepts 32 MiB.
 */
const MAX_FULL_PROMISE_BYTES = 100_000;
const MAX_FULL_BATCH_BYTES = 4_000_000;

/** The largest number of reports that wait for one caller's object. Further reports are dropped: it checks its jobs later. */
const MAX_WAITING_REPORTS = 1_000;

/** The namespace of the callers' objects. */
export interface CallerObjects extends Locatable {
  get(id: object, options?: object): ObjectCalls;
}

/** The part of a caller's object that is used here. */
interface CallerMethods {
  noteReports(key: string, ended: readonly ReportedJob[], started: readonly ReportedJob[]): Promise<void>;
}

interface CallerReportsOptions {
  objects: CallerObjects;
  /** Reads claims of shared jobs. */
  client: ResonateClient;
  namespace: string;
  /** Resolves when all earlier commits are durable. */
  durable: () => Promise<void>;
}

/** The jobs of one caller that have finished, and those that were started for it. */
interface Batch {
  ends: ReportedJob[];
  starts: ReportedJob[];
  /** The size of the promises in full. */
  bytes: number;
}

export class CallerReports {
  readonly #options: CallerReportsOptions;
  readonly #waiting = new Map<string, Batch>();
  readonly #sending = new Set<string>();

  constructor(options: CallerReportsOptions) {
    this.#options = options;
  }

  /** Reports the changes of a commit. Callers without a key of their own have no subscriptions and get no reports. */
  onCommit(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind !== "promise" || !isJob(change.promise)) continue;
      const promise = promiseRecord(change.promise);
      if (promise.state !== "pending") void this.#addEnd(promise);
      else if (isNew(change.promise) && promise.tags[REQUEST_TAG] === undefined)
        this.#add("starts", splitKey(localId(promise.id, this.#options.namespace)).key, promise);
    }
  }

  async #addEnd(promise: PromiseRecord): Promise<void> {
    try {
      const { client, namespace } = this.#options;
      for (const key of await callersOf(promise, client, namespace)) this.#add("ends", key, promise);
    } catch {
      // The callers' objects check their jobs later.
    }
  }

  #add(kind: "ends" | "starts", key: string, promise: PromiseRecord): void {
    if (key === "") return;
    const batch = this.#waiting.get(key) ?? { ends: [], starts: [], bytes: 0 };
    this.#waiting.set(key, batch);
    if (batch.ends.length + batch.starts.length >= MAX_WAITING_REPORTS) return;
    const bytes = sizeOf(promise);
    const isFull = bytes <= MAX_FULL_PROMISE_BYTES && batch.bytes + bytes <= MAX_FULL_BATCH_BYTES;
    if (isFull) batch.bytes += bytes;
    batch[kind].push(isFull ? promise : promise.id);
    if (!this.#sending.has(key)) void this.#send(key);
  }

  /** Sends the waiting reports. Reports that are added during a call are sent with the next one. */
  async #send(key: string): Promise<void> {
    const { objects, namespace, durable } = this.#options;
    this.#sending.add(key);
    try {
      await durable();
      for (let batch = this.#takeBatch(key); batch; batch = this.#takeBatch(key)) {
        const object = objects.get(objects.idFromName(objectName(CALLER_ROLE, namespace, key)));
        await methodsInRole<CallerMethods>(object, CALLER_ROLE).noteReports(key, batch.ends, batch.starts);
      }
    } catch {
      this.#waiting.delete(key); // The caller's object checks its jobs later.
    } finally {
      this.#sending.delete(key);
    }
  }

  #takeBatch(key: string): Batch | undefined {
    const batch = this.#waiting.get(key);
    this.#waiting.delete(key);
    return batch;
  }
}

const isJob = ({ id, tags }: StoredPromise) => isRoot(id) && tags["resonate:target"] !== undefined;

/** Whether the change creates the promise. A new promise has no callbacks and listeners yet. */
const isNew = ({ callbacks, listeners }: StoredPromise) => callbacks.size === 0 && listeners.size === 0;
