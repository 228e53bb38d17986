/** The operations and records of Resonate's protocol that this product uses. */
import { isRecord, jsonOf } from "../json.ts";

/** The version that every request names, and the only one that the supported server speaks. */
export const PROTOCOL_VERSION = "2026-04-01";

/** A parameter or value: base64 of JSON, see `codec.ts`. */
export interface Value {
  headers?: Record<string, string>;
  data?: string;
}

export type PromiseState = "pending" | "resolved" | "rejected" | "rejected_canceled" | "rejected_timedout";

/** A promise as the server stores it; times are milliseconds since the epoch. */
export interface PromiseRecord {
  id: string;
  state: PromiseState;
  param: Value;
  value: Value;
  tags: Record<string, string>;
  timeoutAt: number;
  createdAt: number;
  settledAt?: number;
  /** How many characters the data of the value has that the server has left out, as the reader wanted. */
  omitted?: number;
}

/** The execution of a promise. Its version grows with each lease; `ttl` is the lease's length in milliseconds. */
export interface TaskRecord {
  id: string;
  state: "pending" | "acquired" | "suspended" | "halted" | "fulfilled";
  version: number;
  resumes: string[] | number | boolean;
  ttl?: number;
  pid?: string;
}

/** The lease on a task, as requests name it. */
export interface LeaseRef {
  id: string;
  version: number;
}

/** Promises that a search found; there are more if it has a cursor. */
export interface SearchPage {
  promises: PromiseRecord[];
  cursor?: string;
}

/** A task with its promise and the promises of its branch that have settled. */
export interface AcquiredTask {
  task: TaskRecord;
  promise: PromiseRecord;
  preload: PromiseRecord[];
  /** Only from an embedded server, on request: all journal entries of the job from this number on are in `preload`. */
  records?: number;
}

interface Create {
  id: string;
  /** Milliseconds since the epoch. */
  timeoutAt: number;
  param: Value;
  tags: Record<string, string>;
}

interface Settle {
  id: string;
  state: "resolved" | "rejected" | "rejected_canceled";
  value: Value;
}

interface Await {
  awaited: string;
  awaiter: string;
}

/** A request within a request; the client adds its head. */
interface Action<K extends string, Data> {
  kind: K;
  data: Data;
}

interface PromiseAnswer {
  promise: PromiseRecord;
}

type NoData = Record<string, never>;

/** By kind: the data of a request, of its answer with 200 and, if it exists, of its answer with 300. */
interface Operations {
  "promise.get": { data: { id: string }; answer: PromiseAnswer };
  "promise.create": { data: Create; answer: PromiseAnswer };
  "promise.settle": { data: Settle; answer: PromiseAnswer };
  /** An addition of the embedded server: removes all generations of a job's name. Answers 422 if one or its clean-up is pending. */
  "promise.forget": { data: { id: string }; answer: NoData };
  /**
   * An addition of the embedded server: reads up to 100 promises; null stands for one that does not exist. The answer may hold only
   * those at the beginning. The ends of pending ones are pushed to `address` while its connection is open. Values whose JSON has
   * more than `maxValue` characters are left out.
   */
  "promise.read": {
    data: { ids: readonly string[]; address?: string | undefined; maxValue?: number | undefined };
    answer: { records: (PromiseRecord | null)[] };
  };
  "promise.register_listener": { data: { awaited: string; address: string }; answer: PromiseAnswer };
  "promise.search": {
    data: { state?: PromiseState; tags?: Record<string, string>; limit?: number; cursor?: string };
    answer: SearchPage;
  };
  "task.get": { data: { id: string }; answer: { task: TaskRecord } };
  "task.create": {
    data: { pid: string; ttl: number; action: Action<"promise.create", Create> };
    /** The task of a promise that has settled is `fulfilled`, and not acquired. */
    answer: { task: TaskRecord; promise: PromiseRecord; preload: PromiseRecord[] };
  };
  /**
   * `records` asks an embedded server for the job's journal entries from that number on, and for those that resumed the task; 0
   * asks only for the latter. Other servers ignore it.
   */
  "task.acquire": { data: LeaseRef & { pid: string; ttl: number; records?: number | undefined }; answer: AcquiredTask };
  "task.release": { data: LeaseRef; answer: NoData };
  "task.suspend": {
    data: LeaseRef & { actions: Action<"promise.register_callback", Await>[] };
    answer: NoData;
    /** One of the promises has settled already, so the task goes on. */
    redirect: { preload: PromiseRecord[] };
  };
  "task.fulfill": { data: LeaseRef & { action: Action<"promise.settle", Settle> }; answer: PromiseAnswer };
  "task.fence": {
    data: LeaseRef & { action: Action<"promise.create", Create> | Action<"promise.settle", Settle> };
    /** The action's answer has its own envelope. */
    answer: { action: { kind: string; head: { status: number }; data: PromiseAnswer }; preload: PromiseRecord[] };
  };
  "task.heartbeat": { data: { pid: string; tasks: LeaseRef[] }; answer: NoData };
  "task.search": {
    data: { state?: TaskRecord["state"]; limit?: number; cursor?: string };
    answer: { tasks: TaskRecord[]; cursor?: string };
  };
}

export type OperationKind = keyof Operations;
export type RequestData<K extends OperationKind> = Operations[K]["data"];

/** An answer: 404 if something does not exist, 409 for a lost lease, 422 for an operation that is not possible. */
export type OperationAnswer<K extends OperationKind> =
  | { status: 200; data: Operations[K]["answer"] }
  | (Operations[K] extends { redirect: infer Data } ? { status: 300; data: Data } : never)
  | { status: 404 | 409 | 422; data: unknown };

/** A pushed message: the dispatch of a task, or a promise that has settled. */
export type Message = { kind: "execute"; task: LeaseRef } | { kind: "unblock"; promise: PromiseRecord };

/** Parses a pushed message; undefined for text that is not a message of this protocol. */
export function parseMessage(text: string): Message | undefined {
  const message = jsonOf(text);
  if (!isRecord(message) || !isRecord(message.data)) return undefined;
  const { task, promise } = message.data;
  if (message.kind === "execute" && isRecord(task)) {
    const { id, version } = task;
    return typeof id === "string" && typeof version === "number"
      ? { kind: "execute", task: { id, version } }
      : undefined;
  }
  if (message.kind === "unblock" && isPromise(promise)) return { kind: "unblock", promise };
  return undefined;
}

function isPromise(value: unknown): value is PromiseRecord & Record<string, unknown> {
  return (
    isRecord(value) &&
    typeof value.id === "string" &&
    typeof value.state === "string" &&
    [value.param, value.value, value.tags].every(isRecord)
  );
}

/** The content type of a batch for the embedded server: several requests, each on its own line, answered by as many lines. */
export const NDJSON = "application/x-ndjson";

export const MAX_BATCH_LINES = 64;

/** Encodes the parameters and values of promises before they are sent to the server, and decodes those that come back. */
export interface Codec {
  /** A request's data as it is sent; undefined if it is sent as it is. */
  readonly encode: (<T extends object>(data: T) => Promise<T>) | undefined;
  /** The text by which an answer or a message shows that it has to be decoded; empty if each has to be. */
  readonly mark: string;
  /** @throws {Error} for an answer that cannot be decoded */
  decode<T>(data: T): Promise<T>;
  /** @throws {Error} for a promise that cannot be decoded */
  decodeRecord(record: PromiseRecord): Promise<PromiseRecord>;
}
