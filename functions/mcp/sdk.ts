/** The requests that are the SDK's to answer: whatever is not plain. */
import type { McpServerFactory, ReadResourceResult, ServerContext } from "@modelcontextprotocol/server";
import { KEEP_ALIVE } from "../http/event-stream.ts";
import { authInfoOf, type RequestScope, scopeOf } from "../http/request.ts";
import type { Cards } from "../resources/cards.ts";
import { readJob } from "../resources/job-resource.ts";
import { TEMPLATES } from "../resources/templates.ts";
import { capabilitiesOf, declaresTasks, registerTaskMethods } from "../tasks/methods.ts";
import { tasksServer } from "../tasks/server.ts";
import type { TaskService } from "../tasks/service.ts";
import { showsCards, showsForms } from "../tasks/task.ts";
import type { CallRequest, Calls } from "./calls.ts";
import { CACHE, capabilities, type Identity } from "./identity.ts";
import type { Sdk } from "./load-sdk.ts";

export interface SdkOptions {
  calls: Calls;
  tasks: TaskService | undefined;
  identity: Identity;
  /** The pages of tools; undefined in a deployment without. */
  cards: Cards | undefined;
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

/**
 * Answers by the SDK, with a server and a handler for each request: a handler keeps what it has under way, and what it
 * keeps of a request whose work the platform has cancelled would stay there for good.
 */
export function createSdk(
  { createMcpHandler, Server }: Sdk,
  { calls, tasks, identity, cards, maxBody }: SdkOptions,
): (request: SdkRequest) => Promise<Response> {
  const TasksServer = tasksServer(Server);
  const createServer: McpServerFactory = ({ era }) => {
    const offersTasks = tasks !== undefined && era === "modern";
    const server = new TasksServer(identity.info, {
      capabilities: capabilities(offersTasks),
      instructions: identity.instructions,
      cacheHints: {
        "tools/list": CACHE,
        "server/discover": CACHE,
        "resources/list": CACHE,
        "resources/templates/list": CACHE,
      },
    });
    server.setRequestHandler("tools/list", () => ({ tools: calls.listing }) as never);
    server.setRequestHandler("tools/call", ({ params }, context) => {
      return calls.call(params.name, params.arguments ?? {}, callContextOf(context)) as never;
    });
    server.setRequestHandler("resources/list", () => ({ resources: [] }));
    server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: TEMPLATES }));
    server.setRequestHandler("resources/read", ({ params: { uri } }, context) => {
      const { signal } = context.mcpReq;
      const read = (): Promise<ReadResourceResult> => {
        if (cards?.has(uri)) return cards.read(uri);
        return calls.reads(uri)
          ? (calls.read(uri, callContextOf(context)) as never)
          : readJob(scopeOf(context).store, uri, signal);
      };
      return calls.explained(read(), signal);
    });
    if (offersTasks) registerTaskMethods(server, tasks);
    return server;
  };
  const options = { maxRequestBodySize: maxBody, keepAliveMs: KEEP_ALIVE };
  return ({ request, scope, parsedBody, streamed }) => {
    const handler = createMcpHandler(createServer, { ...options, ...(streamed && { responseMode: "sse" }) });
    const more = { authInfo: authInfoOf(scope), ...(parsedBody !== undefined && { parsedBody }) };
    return handler.fetch(request, more);
  };
}

function callContextOf(context: ServerContext): CallRequest {
  const { signal, _meta, inputResponses = {}, notify } = context.mcpReq;
  const { progressToken, idempotencyKey } = { ..._meta } as {
    progressToken?: string | number;
    idempotencyKey?: unknown;
  };
  const call = {
    scope: scopeOf(context),
    declaresTasks: declaresTasks(context),
    showsForms: showsForms(capabilitiesOf(context)),
    showsCards: showsCards(capabilitiesOf(context)),
    signal,
    inputResponses,
    ...(typeof idempotencyKey === "string" && idempotencyKey !== "" && { idempotencyKey }),
  };
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
