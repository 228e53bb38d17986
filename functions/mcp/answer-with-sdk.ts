/** Answers requests with the SDK: those that are not plain, or that no row of the method table answers. */
import type {
  JSONRPCRequest,
  McpRequestContext,
  ReadResourceResult,
  Result,
  ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { mayHaveFiles } from "../../core/author/file.ts";
import { ErrorCode, isInputRequired, LOG_LEVEL, ProtocolError } from "../../core/tools/mcp.ts";
import { capabilitiesOf, registerTaskMethods } from "../../features/tasks/methods.ts";
import { abilitiesOf } from "../../features/tasks/task.ts";
import { type CallRequest, reporting, saidInMeta } from "../calls/tool-calls.ts";
import { boundedStream, KEEP_ALIVE } from "../http/event-stream.ts";
import type { Sdk } from "../http/load-sdk.ts";
import type { RequestScope } from "../http/scope.ts";
import { MAX_BODY } from "./body.ts";
import { CACHE, capabilities, listsOf } from "./identity.ts";
import { readJob } from "./job-resource.ts";
import type { Offered } from "./methods.ts";

interface SdkRequest {
  request: Request;
  scope: RequestScope;
  /** The body, where it has been read. */
  parsedBody?: unknown;
  /** Whether the response is to be a stream that begins at once. */
  streamed?: boolean;
  /** Called when the response is complete. */
  onEnd?: (() => void) | undefined;
}

/** Parameters that this server itself checks. */
const ANY = z.looseObject({});

/**
 * Answers with the SDK. Each request has its own server and handler: a handler holds its requests in progress, and a shared one
 * would hold those whose work the platform has cancelled forever.
 */
export function createSdk(
  { createMcpHandler, Server }: Sdk,
  { calls, tasks, events, identity, cards, files }: Offered,
): (request: SdkRequest) => Promise<Response> {
  const TasksServer = tasksServer(Server);
  const { passed } = calls;
  const lists = listsOf(calls.listing, passed);
  const cacheHints = Object.fromEntries(["server/discover", ...Object.keys(lists)].map((method) => [method, CACHE]));
  const createServer = (era: McpRequestContext["era"], scope: RequestScope) => {
    const { store, caller } = scope;
    const offersTasks = tasks !== undefined && era === "modern";
    const server = new TasksServer(identity.info, {
      capabilities: capabilities(offersTasks, events !== undefined, passed),
      instructions: identity.instructions,
      cacheHints,
    });
    for (const [method, result] of Object.entries(lists)) {
      server.setRequestHandler(method as "tools/list", () => result as never);
    }
    server.setRequestHandler("tools/call", ({ params }, context) => {
      return calls.call(params.name, params.arguments ?? {}, callOfSdk(context, scope)) as never;
    });
    for (const method of Object.keys(passed?.methods ?? {})) {
      server.setRequestHandler(
        method,
        { params: ANY },
        (params, context) => calls.pass(method, params, callOfSdk(context, scope)) as Promise<Result>,
      );
    }
    server.setRequestHandler("resources/read", ({ params: { uri } }, context) => {
      const { signal } = context.mcpReq;
      const read = async (): Promise<ReadResourceResult> => {
        const card = await cards?.read(uri);
        if (card) return { ...card, ...CACHE };
        if (passed?.weightOfRead(uri))
          return (await calls.pass("resources/read", { uri }, callOfSdk(context, scope))) as never;
        if (!mayHaveFiles(uri)) return readJob(store, uri, signal);
        const file = await (await files()).resource(store, uri, caller, signal);
        if ("refusal" in file) throw new ProtocolError(ErrorCode.InvalidParams, file.refusal, { uri });
        return file as never;
      };
      return calls.explained(read(), signal);
    });
    if (offersTasks) registerTaskMethods(server, tasks, scope);
    if (events) {
      for (const [method, answer] of Object.entries(events.answers)) {
        server.setRequestHandler(method, { params: ANY }, (given, context) =>
          calls.explained(answer(given, scope), context.mcpReq.signal),
        );
      }
      // Here the SDK judges only the request: the stream itself does not pass through it.
      server.setRequestHandler("events/stream", { params: ANY }, (given) => events.check(given));
    }
    return server;
  };
  const options = { maxRequestBodySize: MAX_BODY, keepAliveMs: KEEP_ALIVE };
  return async ({ request, scope, parsedBody, streamed, onEnd }) => {
    const more = { ...options, ...(streamed && { responseMode: "sse" as const }) };
    const handler = createMcpHandler(({ era }) => createServer(era, scope), more);
    return boundedStream(await brief(await handler.fetch(request, { parsedBody })), scope, onEnd);
  };
}

/** The longest refusal that is returned as it is, in characters. */
const LONGEST_REFUSAL = 4_000;

/** Shortens a long refusal. Where headers differ from the body, the SDK quotes both, however long they are. */
async function brief(response: Response): Promise<Response> {
  if (response.status !== 400) return response;
  const text = await response.clone().text();
  if (text.length <= LONGEST_REFUSAL) return response;
  const refusal = JSON.parse(text) as { error: { code: number; message: string } };
  const { code, message } = refusal.error;
  return Response.json({ ...refusal, error: { code, message: `${message.slice(0, 500)}…` } }, { status: 400 });
}

function callOfSdk(context: ServerContext, scope: RequestScope): CallRequest {
  const { signal, _meta, envelope, inputResponses = {}, notify } = context.mcpReq;
  const declared = capabilitiesOf(context);
  const { [LOG_LEVEL]: logLevel } = { ...envelope } as { [LOG_LEVEL]?: unknown };
  // Delivery fails only when the client has left.
  const tell = (method: string, params: object) => void notify({ method, params } as never).catch(() => {});
  return {
    notify: tell,
    scope,
    ...abilitiesOf(declared),
    signal,
    inputResponses,
    cancelsByLeaving: declared !== undefined,
    ...saidInMeta({ ..._meta }),
    ...(logLevel !== undefined && { logLevel }),
    requestState: context.mcpReq.requestState<string>(),
    ...reporting(_meta?.progressToken, tell),
  };
}

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/**
 * A server whose tools may answer with a task, or with content of a wrapped server that the SDK does not know. The SDK still
 * judges requests, and results that ask the client. Malformed parameters are "invalid params" here, where the SDK reports an
 * internal error.
 */
function tasksServer(Server: Sdk["Server"]): Sdk["Server"] {
  return class extends Server {
    protected override _wrapHandler(method: string, handler: Handler): Handler {
      return async (request, context) => {
        let answer: Result | undefined;
        const judged = super._wrapHandler(method, async (...given) => {
          const result = await handler(...given);
          if (method !== "tools/call" || isInputRequired(result)) return result;
          answer = result;
          return { content: [] };
        });
        const result = await judged(request, context).catch((error) => {
          throw invalidParams(error) ?? error;
        });
        return answer ?? result;
      };
    }
  };
}

/** The findings of the SDK's parser, which it throws as an error whose message is a JSON list of issues. */
function invalidParams({ name, message }: Error): ProtocolError | undefined {
  if (name !== "Error" || !message.startsWith("[")) return undefined;
  const issues = JSON.parse(message) as { path: string[]; message: string }[];
  const found = issues.map(({ path, message }) => `${path.slice(1).join(".")}: ${message}`).join("; ");
  return new ProtocolError(ErrorCode.InvalidParams, `Invalid params: ${found}`.slice(0, 500));
}
