/** The requests that are the SDK's to answer: whatever is not plain. */
import { createMcpHandler, type McpServerFactory, type ServerContext } from "@modelcontextprotocol/server";
import { KEEP_ALIVE } from "../event-stream.ts";
import { authInfoOf, type RequestScope, scopeOf } from "../request.ts";
import { declaresTasks, registerTaskMethods } from "../tasks/methods.ts";
import { TasksServer } from "../tasks/server.ts";
import type { TaskService } from "../tasks/service.ts";
import type { CallContext, Calls } from "./calls.ts";
import { CACHE, capabilities, IDENTITY, INSTRUCTIONS } from "./identity.ts";

export {
  hostHeaderValidationResponse,
  isJsonContentType,
  originValidationResponse,
  readRequestBody,
} from "@modelcontextprotocol/server";

export interface SdkOptions {
  calls: Calls;
  tasks: TaskService | undefined;
  /** In bytes. */
  maxBody: number;
}

export interface SdkRequest {
  request: Request;
  scope: RequestScope;
  /** The body, where it was read already. */
  parsedBody?: unknown;
  /** Whether the answer is to be a stream that begins at once. */
  streamed?: boolean;
}

/** Answers by the SDK, with a server for each request. */
export function createSdk({ calls, tasks, maxBody }: SdkOptions): (request: SdkRequest) => Promise<Response> {
  const createServer: McpServerFactory = ({ era }) => {
    const offersTasks = tasks !== undefined && era === "modern";
    const server = new TasksServer(IDENTITY, {
      capabilities: capabilities(offersTasks),
      instructions: INSTRUCTIONS,
      cacheHints: { "tools/list": CACHE, "server/discover": CACHE },
    });
    server.setRequestHandler("tools/list", () => ({ tools: calls.listing }) as never);
    server.setRequestHandler("tools/call", ({ params }, context) => {
      return calls.call(params.name, params.arguments ?? {}, callContextOf(context)) as never;
    });
    if (offersTasks) registerTaskMethods(server, tasks);
    return server;
  };
  const options = { maxRequestBodySize: maxBody, keepAliveMs: KEEP_ALIVE };
  const plain = createMcpHandler(createServer, options);
  const streaming = createMcpHandler(createServer, { ...options, responseMode: "sse" });
  return ({ request, scope, parsedBody, streamed }) => {
    const more = { authInfo: authInfoOf(scope), ...(parsedBody !== undefined && { parsedBody }) };
    return (streamed ? streaming : plain).fetch(request, more);
  };
}

function callContextOf(context: ServerContext): CallContext {
  const { signal, _meta, inputResponses = {}, notify } = context.mcpReq;
  const progressToken = _meta?.progressToken;
  const call = { scope: scopeOf(context), declaresTasks: declaresTasks(context), signal, inputResponses };
  if (progressToken === undefined) return call;
  return {
    ...call,
    reportProgress(progress, total, message) {
      const params = { progressToken, progress, total, message };
      // A notification that cannot be delivered has nobody to be delivered to.
      notify({ method: "notifications/progress", params }).catch(() => {});
    },
  };
}
