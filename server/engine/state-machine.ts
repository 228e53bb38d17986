/**
 * The Resonate SDK's own server: a deterministic state machine that answers every operation of the protocol and says
 * what has changed. The SDK keeps it inside `LocalNetwork` and does not publish its types; these are the parts that
 * are used here. Its answers go out unchanged.
 */
import {
  LocalNetwork,
  type Message,
  type PromiseRecord,
  type Request,
  type ScheduleRecord,
  type TaskRecord,
} from "@resonatehq/sdk";

export type StoredPromise = Omit<PromiseRecord, "settledAt"> & {
  settledAt: number | null;
  /** Ids of the tasks that wait for this promise. */
  callbacks: Set<string>;
  /** Addresses to tell when this promise settles. */
  listeners: Set<string>;
};
export type Task = Omit<TaskRecord, "resumes"> & { resumes: Set<string> };
export type Schedule = Omit<ScheduleRecord, "nextRunAt">;

/** Times are milliseconds since the epoch. A task's time-out is of type 0 (dispatch it again) or 1 (its lease ends). */
export interface Timeout {
  id: string;
  timeout: number;
  type?: 0 | 1;
}

export type Change =
  | { kind: "promise.set"; promise: PromiseRecord }
  | { kind: "task.set"; task: TaskRecord }
  | { kind: "schedule.set"; schedule: ScheduleRecord }
  | { kind: "schedule.del"; id: string }
  | { kind: "ptimeout.set" | "ttimeout.set" | "stimeout.set"; timeout: Timeout }
  | { kind: "ptimeout.del" | "ttimeout.del" | "stimeout.del"; id: string }
  | { kind: "message.send"; address: string; message: Message };

export interface Transition {
  response: { kind: string; head: { status: number }; data: unknown };
  changes: Change[];
}

export interface StateMachine {
  promises: Map<string, StoredPromise>;
  tasks: Map<string, Task>;
  schedules: Map<string, Schedule>;
  pTimeouts: Timeout[];
  tTimeouts: Timeout[];
  sTimeouts: Timeout[];
  outgoing: unknown[];
  apply(now: number, request: Request): Transition;
}

export function createStateMachine(): StateMachine {
  return (new LocalNetwork() as unknown as { server: StateMachine }).server;
}
