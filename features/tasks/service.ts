import { type Caller, filesIn } from "../../core/author/index.ts";
import { currentJobOf, type DurablePromise, type RemoteStore, withoutFeed } from "../../core/jobs/index.ts";
import {
  type CallToolResult,
  ErrorCode,
  type HandleRequest,
  type JobHandles,
  ProtocolError,
  promiseOf,
  referringIn,
  TASKS_EXTENSION,
  withMedia,
} from "../../core/tools/index.ts";
import type { EdgeLog } from "../../functions/http/log.ts";
import { outageIn } from "../../functions/http/outage.ts";
import { type DetailedTask, detailedTask } from "./task.ts";

/** Shows the files of a result, in lines and links. */
export interface FileLinks {
  withFileLinks<Result extends CallToolResult>(
    result: Result,
    value: unknown,
    caller: Caller,
    links: boolean,
  ): Promise<Result>;
}

/** The parts of an edge that task methods work with. */
export interface TaskService {
  handles: JobHandles;
  log: EdgeLog;
  /** The address of a job's page, for the caller whose job it is; undefined in a deployment without links. */
  urlOf(job: string, caller: Caller): Promise<string | undefined>;
  files(): Promise<FileLinks>;
  /** Answers questions of a job; returns an answer that does not fit. */
  answer(
    store: RemoteStore,
    promise: DurablePromise,
    responses: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<{ key: string; reason: string } | undefined>;
  /** How long jobs are kept after their end by default, in milliseconds; undefined: forever, or not known. */
  retentionMs: number | undefined;
}

export function missingTasksCapability(): ProtocolError {
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  const message = "Missing required client capabilities: extensions";
  return new ProtocolError(ErrorCode.MissingRequiredClientCapability, message, data);
}

/** @throws {ProtocolError} -32602 when no task has the id, -32603 when the Resonate server cannot be asked */
export function getTask(
  service: TaskService,
  taskId: unknown,
  request: HandleRequest & { showsForms: boolean },
): Promise<DetailedTask & Record<string, unknown>> {
  const { store, signal, showsForms, caller } = request;
  const read = async () => {
    const promise = await withMedia(store, await promiseOf(service.handles, taskId, request), signal);
    const current = await currentJobOf(store, promise, signal, "recent");
    const page = await service.urlOf(promise.name, caller);
    const task = detailedTask(String(taskId), current, {
      now: Date.now(),
      showsForms,
      retentionMs: service.retentionMs,
      page,
    });
    return { ...(await withFiles(service, task, promise, caller)) };
  };
  return orUnavailable(service, read());
}

/**
 * The task with lines and links for the files of its result. The addresses in the lines are sealed for the caller, and differ
 * each time.
 */
export async function withFiles(
  { files }: TaskService,
  task: DetailedTask,
  { job }: DurablePromise,
  caller: Caller,
): Promise<DetailedTask> {
  const referring = task.status === "completed" && referringIn(task.result, job);
  if (task.status !== "completed" || filesIn(referring, 1).length === 0) return task;
  const withFileLinks = (await files()).withFileLinks(task.result, referring, caller, true);
  return { ...task, result: await withFileLinks };
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
 * The job's name and the address of its page are in the status message for people, and in `_meta` for programs.
 *
 * @param note what else there is to say about the call
 */
export async function createTask(
  { handles, retentionMs, urlOf }: TaskService,
  caller: Caller,
  promise: DurablePromise,
  note: string | undefined,
) {
  const taskId = await handles.seal(promise.name, caller.id, promise.createdAt);
  // The result is not part of a created task, even of one that has ended: clients collect it with `tasks/get`.
  const page = await urlOf(promise.name, caller);
  const { result, error, inputRequests, ...task } = {
    ...detailedTask(taskId, withoutFeed(promise), { now: Date.now(), showsForms: false, retentionMs, page }),
  } as Record<string, unknown>;
  const statusMessage = [note, task.statusMessage].filter(Boolean).join("\n");
  const _meta = { job_name: promise.name, ...(page && { view_url: page }) };
  return { resultType: "task" as const, ...task, ...(statusMessage && { statusMessage }), _meta };
}
