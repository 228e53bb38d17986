/** The methods of the Tasks extension, as the SDK serves them. */
import { type ClientCapabilities, fromJsonSchema, type Server, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { Answer, type Question } from "../jobs/journal.ts";
import { CLIENT_CAPABILITIES, ErrorCode, ProtocolError } from "../protocol.ts";
import { scopeOf } from "../request.ts";
import {
  getTask,
  missingTasksCapability,
  nameOf,
  orUnavailable,
  promiseOf,
  type TaskRequest,
  type TaskService,
  unknownTask,
} from "./service.ts";
import { snapshotOf, TASKS } from "./task.ts";

/** The longest answer to a question that is taken, in characters of JSON. */
const MAX_ANSWER = 10_000;

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
  const capabilities = envelope[CLIENT_CAPABILITIES] as ClientCapabilities | undefined;
  return capabilities?.extensions?.[TASKS] !== undefined;
}

/** @throws {ProtocolError} -32021 for a request that did not declare the extension */
export function requireTasks(context: ServerContext): void {
  if (!declaresTasks(context)) throw missingTasksCapability();
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
    throw new ProtocolError(ErrorCode.InvalidParams, "inputResponses: an object of answers by key is required");
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
  return new ProtocolError(ErrorCode.InvalidParams, message, { key });
}
