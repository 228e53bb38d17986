/** The records that the server keeps, and the changes by a request. Times are milliseconds since the epoch. */
import type { Message, PromiseRecord, Request, ScheduleRecord, TaskRecord } from "@resonatehq/sdk";

export type StoredPromise = Omit<PromiseRecord, "settledAt"> & {
  settledAt: number | null;
  /** Ids of the tasks that this promise resumes when it settles. */
  callbacks: ReadonlySet<string>;
  /** Addresses that are notified when this promise settles. */
  listeners: ReadonlySet<string>;
};

export type Task = Omit<TaskRecord, "resumes"> & {
  /** Ids of the promises that have settled since the task last ran. */
  resumes: ReadonlySet<string>;
  /** When a pending task is dispatched again, or when an acquired task's lease expires. */
  timer?: number | undefined;
  /** The address of a pending task's last dispatch. */
  dispatchedTo?: string | undefined;
};

export type Schedule = ScheduleRecord;

export type Change =
  | { kind: "promise"; promise: StoredPromise }
  | { kind: "task"; task: Task }
  | { kind: "schedule"; id: string }
  /** News of a settled promise for one listener. */
  | { kind: "unblock"; address: string; message: Extract<Message, { kind: "unblock" }> }
  /** The connection at an address is to learn of the end of a promise. */
  | { kind: "watch"; address: string; promise: string }
  /** A dispatch of a pending task, which is repeated at `timer` unless a worker claims the task. */
  | { kind: "execute"; address: string; task: { id: string; version: number }; timer: number };

export interface Response {
  kind: string;
  head: { status: number };
  data: unknown;
}

export interface Outcome {
  response: Response;
  changes: Change[];
}

/** The records that the state machine reads and writes. A record is never changed in place: a changed copy replaces it. */
export interface State {
  promise(id: string): StoredPromise | undefined;
  task(id: string): Task | undefined;
  schedule(id: string): Schedule | undefined;
  /** The promises with this tag `resonate:branch`, by id. */
  branch(name: string): StoredPromise[];
  awaitedBy(task: string): StoredPromise[];
  putPromise(promise: StoredPromise): void;
  putTask(task: Task): void;
  putSchedule(schedule: Schedule): void;
  deleteSchedule(id: string): void;
}

/** The ids of the records that are due. */
export interface Due {
  promises: readonly string[];
  tasks: readonly string[];
  schedules: readonly string[];
}

/** The operations that the state machine carries out. The engine answers searches from the store. */
export type Operation = Exclude<Request, { kind: `debug.${string}` | `${string}.search` }>;

/** A promise as clients see it. */
export function promiseRecord({ callbacks, listeners, settledAt, ...promise }: StoredPromise): PromiseRecord {
  return settledAt === null ? promise : { ...promise, settledAt };
}

/** A task as clients see it. */
export function taskRecord({ timer, dispatchedTo, resumes, pid, ttl, ...task }: Task): TaskRecord {
  return { ...task, resumes: resumes.size, ...(pid !== undefined && { pid }), ...(ttl !== undefined && { ttl }) };
}
