import type { Caller } from "../../core/definitions/caller.ts";
import {
  type DurablePromise,
  type RemoteStore,
  ResonateRefused,
  ResonateUnavailable,
} from "../../core/jobs/remote-store.ts";
import { jobSnapshotOf, withoutFeed } from "../../core/jobs/snapshot.ts";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import type { EdgeLog } from "../http/log.ts";
import type { TaskHandles } from "./handle.ts";
import { type DetailedTask, detailedTask, TASKS } from "./task.ts";

/** What task methods work with. */
export interface TaskService {
  handles: TaskHandles;
  log: EdgeLog;
  /** For how long jobs are kept after their end where they do not say, in milliseconds; undefined: for ever, or not known. */
  kept: number | undefined;
}

/** Who asks, with the jobs as this caller sees them, and until when. */
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

/** @throws {ProtocolError} -32602 when the id is no task's, -32603 when the Resonate server cannot be asked */
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
    if (error instanceof ResonateRefused) {
      log.error("resonate refused", { reason: error.message });
      const message = `The Resonate server, which keeps the tasks, refuses this: ${error.message}. No task is lost. Repeating it does not help before whoever runs this server has looked into it.`;
      throw new ProtocolError(ErrorCode.InternalError, message);
    }
    if (!(error instanceof ResonateUnavailable)) throw error;
    log.warn("resonate unavailable", { reason: error.message });
    const message = `The Resonate server, which keeps the tasks, is unavailable: ${error.message}. No task is lost. Repeat the same request later.`;
    throw new ProtocolError(ErrorCode.InternalError, message);
  }
}

/**
 * What a call of a tool answers with when it is a task. The promise exists, and so `tasks/get` finds it. `view_url`: the
 * address of the job's page, which people read in the status, and programs in `_meta`. `note`: what else there is to say of
 * the call.
 */
export async function createTask(
  { handles, kept }: TaskService,
  caller: Caller,
  promise: DurablePromise,
  view_url: string | undefined,
  note: string | undefined,
) {
  const taskId = await handles.seal(promise.name, caller.id, promise.createdAt);
  // The result is not part of a created task, even of one that has ended: it is collected with `tasks/get`.
  const { result, error, inputRequests, ...task } = {
    ...detailedTask(taskId, withoutFeed(promise), { now: Date.now(), showsForms: false, kept }),
  } as Record<string, unknown>;
  const statusMessage = [note, view_url && `Its page: ${view_url}`].filter(Boolean).join("\n");
  const shown = { ...(statusMessage && { statusMessage }), ...(view_url && { _meta: { view_url } }) };
  return { resultType: "task", ...shown, ...task };
}

/** @throws {ProtocolError} -32602 when the id is no task's */
export async function promiseOf(
  service: TaskService,
  taskId: unknown,
  { caller, store, signal }: TaskRequest,
): Promise<DurablePromise> {
  const { name, begun } = await jobOf(service, taskId, caller);
  const promise = await store.get(name, signal);
  // A later job of the name is another task.
  if (!promise || (begun !== undefined && promise.createdAt !== begun)) throw unknownTask();
  return promise;
}

/** @throws {ProtocolError} -32602 when it cannot be a task's id, or is not this caller's */
async function jobOf({ handles }: TaskService, taskId: unknown, caller: Caller) {
  const job = typeof taskId === "string" ? await handles.open(taskId, caller.id) : undefined;
  if (job === undefined) throw unknownTask();
  return job;
}

export function unknownTask(): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, "taskId: no task has this id");
}
