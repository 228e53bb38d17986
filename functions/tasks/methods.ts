import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  fromJsonSchema,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Caller } from "../caller.ts";
import { Answer, type Question } from "../jobs/journal.ts";
import type { Log } from "../log.ts";
import { scopeOf } from "../request.ts";
import { type DurablePromise, type RemoteStore, ResonateUnavailable } from "../resonate/store.ts";
import type { TaskHandles } from "./handle.ts";
import { type DetailedTask, detailedTask, snapshotOf, TASKS, withoutJournal } from "./task.ts";

/** What task methods work with. */
export interface TaskService {
  store: RemoteStore;
  handles: TaskHandles;
  log: Log;
}

/** The longest answer to a question that is taken, in characters of JSON. */
const MAX_ANSWER = 10_000;

/** Who asks, and until when. */
export interface TaskRequest {
  caller: Caller;
  signal?: AbortSignal;
}

const requestOf = (context: ServerContext): TaskRequest => ({
  caller: scopeOf(context).caller,
  signal: context.mcpReq.signal,
});

/** Registers `tasks/get`, `tasks/update` and `tasks/cancel`. */
export function registerTaskMethods(server: Server, service: TaskService): void {
  // Gated before anything else of the request is looked at, so that the parameters are checked by the handlers.
  const params = z.looseObject({});
  server.setRequestHandler("tasks/get", { params }, async ({ taskId }, context) => {
    requireTasks(context);
    return getTask(service, taskId, requestOf(context));
  });
  server.setRequestHandler("tasks/cancel", { params }, async ({ taskId }, context) => {
    requireTasks(context);
    const { caller } = requestOf(context);
    const name = await nameOf(service, taskId, caller);
    if (!(await orUnavailable(service, service.store.as(caller).cancel(name)))) throw unknownTask();
    return {};
  });
  server.setRequestHandler("tasks/update", { params }, async ({ taskId }, context) => {
    requireTasks(context);
    await orUnavailable(service, updateTask(service, taskId, responsesOf(context), requestOf(context)));
    return {};
  });
}

/** Whether the request declared that its client understands tasks. */
export function declaresTasks({ mcpReq }: ServerContext): boolean {
  const envelope: Record<string, unknown> = mcpReq.envelope ?? {};
  const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  return capabilities?.extensions?.[TASKS] !== undefined;
}

/** @throws {MissingRequiredClientCapabilityError} for a request that did not declare the extension */
export function requireTasks(context: ServerContext): void {
  if (!declaresTasks(context)) throw missingTasksCapability();
}

export function missingTasksCapability(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
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
    throw new ProtocolError(ProtocolErrorCode.InternalError, message);
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

async function promiseOf(
  service: TaskService,
  taskId: unknown,
  { caller, signal }: TaskRequest,
): Promise<DurablePromise> {
  const promise = await service.store.as(caller).get(await nameOf(service, taskId, caller), signal);
  if (!promise) throw unknownTask();
  return promise;
}

async function nameOf({ handles }: TaskService, taskId: unknown, caller: Caller): Promise<string> {
  const name = typeof taskId === "string" ? await handles.open(taskId, caller.id) : undefined;
  if (name === undefined) throw unknownTask();
  return name;
}

function unknownTask(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "taskId: no task has this id");
}

/**
 * The request's `inputResponses`, which the SDK takes out of the parameters. It leaves out those that are no bare
 * response objects; here they are answers like any other, and do not fit.
 *
 * @throws {ProtocolError} -32602 when there are none at all
 */
function responsesOf({ mcpReq }: ServerContext): Record<string, unknown> {
  const { inputResponses, droppedInputResponseKeys = [] } = mcpReq;
  if (!inputResponses && droppedInputResponseKeys.length === 0) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "inputResponses: an object of answers by key is required");
  }
  return { ...inputResponses, ...Object.fromEntries(droppedInputResponseKeys.map((key) => [key, undefined])) };
}

/**
 * Answers the open questions that `responses` names. Keys of questions that are unknown or answered are ignored.
 * One answer that does not fit its question is an error, and then none is taken.
 */
async function updateTask(
  service: TaskService,
  taskId: unknown,
  responses: Record<string, unknown>,
  request: TaskRequest,
) {
  const promise = await promiseOf(service, taskId, request);
  const store = service.store.as(request.caller);
  const { questions } = await snapshotOf(store, promise, request.signal);
  const answers: { promiseId: string; answer: Answer }[] = [];
  for (const [key, { promiseId, question }] of questions) {
    if (Object.hasOwn(responses, key)) {
      answers.push({ promiseId, answer: await checkAnswer(key, question, responses[key]) });
    }
  }
  await Promise.all(answers.map(({ promiseId, answer }) => store.journals.answer(promiseId, answer)));
}

/** @throws {ProtocolError} -32602 naming the key and what is wrong with the answer */
async function checkAnswer(key: string, { requestedSchema }: Question, response: unknown): Promise<Answer> {
  const answer = Answer.safeParse(response);
  if (!answer.success) {
    throw invalidAnswer(
      key,
      'an object with action "accept" and content, or action "decline" or "cancel", is required',
    );
  }
  const length = JSON.stringify(answer.data).length;
  if (length > MAX_ANSWER) {
    throw invalidAnswer(key, `it has ${length} characters as JSON; up to ${MAX_ANSWER} are accepted`);
  }
  if (answer.data.action === "accept") {
    const checked = await fromJsonSchema(requestedSchema as Parameters<typeof fromJsonSchema>[0])["~standard"].validate(
      answer.data.content,
    );
    if (checked.issues) throw invalidAnswer(key, checked.issues.map((issue) => issue.message).join("; "));
  }
  return answer.data;
}

function invalidAnswer(key: string, reason: string): ProtocolError {
  const message = `inputResponses.${key}: ${reason.replace(/\.*$/, "")}. The question stays open.`;
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, { key });
}
