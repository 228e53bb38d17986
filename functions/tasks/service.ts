import type { Caller } from "../caller.ts";
import type { Log } from "../log.ts";
import { ErrorCode, ProtocolError } from "../protocol.ts";
import { type DurablePromise, type RemoteStore, ResonateUnavailable } from "../resonate/store.ts";
import type { TaskHandles } from "./handle.ts";
import { type DetailedTask, detailedTask, snapshotOf, TASKS, withoutJournal } from "./task.ts";

/** What task methods work with. */
export interface TaskService {
  store: RemoteStore;
  handles: TaskHandles;
  log: Log;
}

/** Who asks, and until when. */
export interface TaskRequest {
  caller: Caller;
  signal?: AbortSignal;
}

export function missingTasksCapability(): ProtocolError {
  const data = { requiredCapabilities: { extensions: { [TASKS]: {} } } };
  const message = "Missing required client capabilities: extensions";
  return new ProtocolError(ErrorCode.MissingRequiredClientCapability, message, data);
}

/** @throws {ProtocolError} -32602 when the id is no task's, -32603 when the Resonate server cannot be asked */
export async function getTask(
  service: TaskService,
  taskId: unknown,
  request: TaskRequest,
): Promise<DetailedTask & Record<string, unknown>> {
  const promise = await orUnavailable(service, promiseOf(service, taskId, request));
  const snapshot = await orUnavailable(service, snapshotOf(service.store.as(request.caller), promise, request.signal));
  return { ...detailedTask(String(taskId), snapshot, Date.now()) };
}

/** @throws {ProtocolError} -32603 when the Resonate server cannot be asked */
export async function orUnavailable<Result>({ log }: TaskService, answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ResonateUnavailable)) throw error;
    log.warn("resonate unavailable", { reason: error.message });
    const message = `The Resonate server, which keeps the tasks, is unavailable: ${error.message}. No task is lost. Repeat the same request later.`;
    throw new ProtocolError(ErrorCode.InternalError, message);
  }
}

/** What a call of a tool answers with when it is a task. The promise exists, and so `tasks/get` finds it. */
export async function createTask({ handles }: TaskService, caller: Caller, promise: DurablePromise) {
  const taskId = await handles.seal(promise.name, caller.id);
  // The result is not part of a created task, even of one that has ended: it is collected with `tasks/get`.
  const { result, error, inputRequests, ...task } = {
    ...detailedTask(taskId, withoutJournal(promise), Date.now()),
  } as Record<string, unknown>;
  return { resultType: "task", ...task };
}

/** @throws {ProtocolError} -32602 when the id is no task's */
export async function promiseOf(
  service: TaskService,
  taskId: unknown,
  { caller, signal }: TaskRequest,
): Promise<DurablePromise> {
  const promise = await service.store.as(caller).get(await nameOf(service, taskId, caller), signal);
  if (!promise) throw unknownTask();
  return promise;
}

/** @throws {ProtocolError} -32602 when it cannot be a task's id, or is not this caller's */
export async function nameOf({ handles }: TaskService, taskId: unknown, caller: Caller): Promise<string> {
  const name = typeof taskId === "string" ? await handles.open(taskId, caller.id) : undefined;
  if (name === undefined) throw unknownTask();
  return name;
}

export function unknownTask(): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, "taskId: no task has this id");
}
