/** The methods of the Tasks extension, as handlers of the SDK. */
import type { ClientCapabilities, Result, Server, ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { CLIENT_CAPABILITIES, ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import type { RequestScope } from "../../functions/http/scope.ts";
import { answerTask } from "../questions/answer.ts";
import {
  getTask,
  missingTasksCapability,
  orUnavailable,
  promiseOf,
  type TaskRequest,
  type TaskService,
  unknownTask,
} from "./service.ts";
import { knowsTasks, showsForms } from "./task.ts";

type Answer = (taskId: unknown, request: TaskRequest, context: ServerContext) => Promise<Result>;

export function registerTaskMethods(server: Server, service: TaskService, { caller, store }: RequestScope): void {
  // The handlers check the parameters themselves, after the client's capabilities.
  const handle = (method: string, answer: Answer) =>
    server.setRequestHandler(method, { params: z.looseObject({}) }, async ({ taskId }, context) => {
      if (!knowsTasks(capabilitiesOf(context))) throw missingTasksCapability();
      return orUnavailable(service, answer(taskId, { caller, store, signal: context.mcpReq.signal }, context));
    });
  handle("tasks/get", (taskId, request, context) =>
    getTask(service, taskId, { ...request, showsForms: showsForms(capabilitiesOf(context)) }),
  );
  handle("tasks/cancel", async (taskId, request) => {
    const { name } = await promiseOf(service, taskId, request);
    if (!(await store.cancel(name))) throw unknownTask();
    return {};
  });
  handle("tasks/update", async (taskId, request, context) => {
    const { misfit } = await answerTask(service, taskId, responsesOf(context), request);
    if (misfit) throw invalidAnswer(misfit.key, misfit.reason);
    return {};
  });
}

/** The client's capabilities as the request declares them; undefined before the 2026-07-28 revision. */
export function capabilitiesOf({ mcpReq }: ServerContext): ClientCapabilities | undefined {
  const envelope: Record<string, unknown> = mcpReq.envelope ?? {};
  return envelope[CLIENT_CAPABILITIES] as ClientCapabilities | undefined;
}

/**
 * The request's `inputResponses`, which the SDK takes out of the parameters. The SDK drops values that are not bare response
 * objects; here they count as answers that do not fit.
 *
 * @throws {ProtocolError} -32602 when there are none at all
 */
function responsesOf({ mcpReq }: ServerContext): Record<string, unknown> {
  const { inputResponses, droppedInputResponseKeys = [] } = mcpReq;
  if (!inputResponses && droppedInputResponseKeys.length === 0) {
    throw new ProtocolError(
      ErrorCode.InvalidParams,
      "Nothing was done: inputResponses: an object of answers by key is required",
    );
  }
  return { ...inputResponses, ...Object.fromEntries(droppedInputResponseKeys.map((key) => [key, undefined])) };
}

function invalidAnswer(key: string, reason: string): ProtocolError {
  const message = `Nothing was done: inputResponses.${key}: ${reason}. The question stays open.`;
  return new ProtocolError(ErrorCode.InvalidParams, message, { key });
}
