/** The methods of the Tasks extension, as handlers of the SDK. */
import type { ClientCapabilities, Server, ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { CLIENT_CAPABILITIES, ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import { scopeOf } from "../http/scope.ts";
import { answerTask } from "./answer.ts";
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

export function registerTaskMethods(server: Server, service: TaskService): void {
  // The handlers check the parameters themselves, after the client's capabilities.
  const params = z.looseObject({});
  server.setRequestHandler("tasks/get", { params }, async ({ taskId }, context) => {
    const request = requestOf(context);
    const { files } = scopeOf(context);
    return getTask(service, taskId, { ...request, files, showsForms: showsForms(capabilitiesOf(context)) });
  });
  server.setRequestHandler("tasks/cancel", { params }, async ({ taskId }, context) => {
    const request = requestOf(context);
    const { name } = await orUnavailable(service, promiseOf(service, taskId, request));
    if (!(await orUnavailable(service, request.store.cancel(name)))) throw unknownTask();
    return {};
  });
  server.setRequestHandler("tasks/update", { params }, async ({ taskId }, context) => {
    const request = requestOf(context);
    const { misfit } = await orUnavailable(service, answerTask(service, taskId, responsesOf(context), request));
    if (misfit) throw invalidAnswer(misfit.key, misfit.reason);
    return {};
  });
}

/** @throws {ProtocolError} -32021 for a request that does not declare the extension */
function requestOf(context: ServerContext): TaskRequest {
  if (!knowsTasks(capabilitiesOf(context))) throw missingTasksCapability();
  const { caller, store } = scopeOf(context);
  return { caller, store, signal: context.mcpReq.signal };
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
