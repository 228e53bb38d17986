import type { Caller } from "../../core/definitions/caller.ts";
import type { DurablePromise, RemoteStore } from "../../core/jobs/remote-store.ts";
import { jobSnapshotOf, withoutFeed } from "../../core/jobs/snapshot.ts";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import type { EdgeLog } from "../http/log.ts";
import { outageIn } from "../http/outage.ts";
import type { TaskHandles } from "./handle.ts";
import { type DetailedTask, detailedTask, TASKS } from "./task.ts";

/** The parts of an edge that task methods work with. */
export interface TaskService {
  handles: TaskHandles;
  log: EdgeLog;
  /** How long jobs are kept after their end by default, in milliseconds; undefined: forever, or not known. */
  kept: number | undefined;
}

/** The caller of a task method, with the jobs as this caller sees them. */
export interface TaskRequest {
  caller: Caller;
  store: RemoteStore;
  signal?: AbortSignal;
}

export function missingTasksCapability(): ProtocolError {
  const data = { requiredCapabilities: { extensions: { [TASKS]: {} } } };
  const message = "Missing required client capabilities: extensions";
  return new ProtocolError(ErrorCode.MissingRequiredClientCapability, message, data);
}

export function unknownTask(): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, "taskId: no task has this id");
}

/** @throws {ProtocolError} -32602 when no task has the id, -32603 when the Resonate server cannot be asked */
export async function getTask(
  service: TaskService,
  taskId: unknown,
  request: TaskRequest & { showsForms: boolean },
): Promise<DetailedTask & Record<string, unknown>> {
  const promise = await orUnavailable(service, promiseOf(service, taskId, request));
  const snapshot = await orUnavailable(service, jobSnapshotOf(request.store, promise, request.signal, "recent"));
  const { showsForms } = request;
  return { ...detailedTask(String(taskId), snapshot, { now: Date.now(), showsForms, kept: service.kept }) };
}

/** @throws {ProtocolError} -32603 when the Resonate server cannot be asked */
export async function orUnavailable<Result>({ log }: TaskService, answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    const outage = outageIn(error, log);
    throw outage === undefined ? error : new ProtocolError(ErrorCode.InternalError, outage);
  }
}

/**
 * The result of a call whose job is a task; its promise exists, so `tasks/get` finds it.
 *
 * @param view_url the address of the job's page: for people in the status message, for programs in `_meta`
 * @param note what else there is to say about the call
 */
export async function createTask(
  { handles, kept }: TaskService,
  caller: Caller,
  promise: DurablePromise,
  view_url: string | undefined,
  note: string | undefined,
) {
  const taskId = await handles.seal(promise.name, caller.id, promise.createdAt);
  // The result is no part of a created task, even of one that has ended: clients collect it with `tasks/get`.
  const { result, error, inputRequests, ...task } = {
    ...detailedTask(taskId, withoutFeed(promise), { now: Date.now(), showsForms: false, kept }),
  } as Record<string, unknown>;
  const statusMessage = [note, view_url && `Its page: ${view_url}`].filter(Boolean).join("\n");
  const shown = { ...(statusMessage && { statusMessage }), ...(view_url && { _meta: { view_url } }) };
  return { resultType: "task", ...shown, ...task };
}

/** The promise of a task; undefined when the id is no task's of this caller. */
export async function findPromise(
  { handles }: TaskService,
  taskId: unknown,
  { caller, store, signal }: TaskRequest,
): Promise<DurablePromise | undefined> {
  const job = typeof taskId === "string" ? await handles.open(taskId, caller.id) : undefined;
  const promise = job && (await store.get(job.name, signal));
  // A later job of the same name is another task.
  return promise?.createdAt === job?.begun ? promise : undefined;
}

/** @throws {ProtocolError} -32602 when the id is no task's of this caller */
export async function promiseOf(service: TaskService, taskId: unknown, request: TaskRequest): Promise<DurablePromise> {
  const promise = await findPromise(service, taskId, request);
  if (!promise) throw unknownTask();
  return promise;
}
