/**
 * The short way for the requests that come most often: a plainly well-formed `tools/call`, `tasks/get`, `tools/list` or
 * `server/discover` is answered without building a server and a transport for it, which costs the SDK several times what
 * the call itself does. A tool that waits answers with a stream of its own, unless it may ask its caller something. The
 * SDK still classifies every request, and everything that is in any way unusual is left to it, so that there is one
 * authority on what is wrong with a request.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  classifyInboundRequest,
  isInputRequiredResult,
  ProtocolError,
  SERVER_INFO_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/server";
import type { RequestScope } from "../request.ts";
import { getTask, type TaskService } from "../tasks/methods.ts";
import { TASKS } from "../tasks/task.ts";
import type { CallContext, Calls } from "./calls.ts";
import { eventStream } from "./event-stream.ts";
import { IDENTITY } from "./identity.ts";

/** The revision with a per-request envelope. */
const MODERN = "2026-07-28";

/** Methods whose answer is the same for every request of an era. */
const CONSTANT = new Set(["tools/list", "server/discover"]);

interface Message {
  jsonrpc: "2.0";
  id: string | number;
  method: string;
  params: Record<string, unknown>;
}

/** A request that can be answered here. */
export interface DirectRequest {
  message: Message;
  era: "modern" | "legacy";
  declaresTasks: boolean;
}

/** The request as one that can be answered here, or undefined: then it is the SDK's. */
export function asDirect({ headers }: Request, body: unknown): DirectRequest | undefined {
  if (!isMessage(body)) return undefined;
  const version = headers.get("mcp-protocol-version") ?? undefined;
  const method = headers.get("mcp-method") ?? undefined;
  const name = headers.get("mcp-name") ?? undefined;
  const outcome = classifyInboundRequest({
    httpMethod: "POST",
    body,
    ...(version !== undefined && { protocolVersionHeader: version }),
    ...(method !== undefined && { mcpMethodHeader: method }),
    ...(name !== undefined && { mcpNameHeader: name }),
  });
  const { params } = body;
  if (outcome.kind === "modern") {
    if (version !== MODERN || outcome.classification.revision !== MODERN || method !== body.method) return undefined;
    if (body.method === "tools/call" && name !== params.name) return undefined;
    if (body.method === "tasks/get" && name !== params.taskId) return undefined;
    const meta = params._meta as Record<string, unknown>;
    const capabilities = meta[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
    return { message: body, era: "modern", declaresTasks: capabilities?.extensions?.[TASKS] !== undefined };
  }
  if (outcome.kind !== "legacy" || body.method === "initialize") return undefined;
  if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(version)) return undefined;
  const accept = headers.get("accept") ?? "";
  if (!accept.includes("application/json") || !accept.includes("text/event-stream")) return undefined;
  return { message: body, era: "legacy", declaresTasks: false };
}

function isMessage(body: unknown): body is Message {
  if (typeof body !== "object" || body === null) return false;
  const { jsonrpc, id, method, params } = body as Partial<Message>;
  const hasId = typeof id === "string" || Number.isInteger(id);
  return jsonrpc === "2.0" && hasId && typeof method === "string" && isRecord(params);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class Direct {
  readonly #calls: Calls;
  readonly #tasks: TaskService | undefined;
  /** The results of the constant methods as JSON, by era and method, as the SDK gave them the first time. */
  readonly #constants = new Map<string, string>();

  constructor(calls: Calls, tasks: TaskService | undefined) {
    this.#calls = calls;
    this.#tasks = tasks;
  }

  /** The answer, or undefined where it is the SDK's to give. `sdk` is asked once for each constant answer. */
  async answer(
    request: DirectRequest,
    scope: RequestScope,
    signal: AbortSignal,
    sdk: () => Promise<Response>,
  ): Promise<Response | undefined> {
    const { message, era, declaresTasks } = request;
    const { method, params } = message;
    if (CONSTANT.has(method) && params.cursor === undefined) return this.#constant(request, sdk);
    if (method === "tasks/get" && era === "modern" && declaresTasks && this.#tasks) {
      const tasks = this.#tasks;
      return respond(request, () => getTask(tasks, params.taskId, { caller: scope.caller, signal }));
    }
    const { name, arguments: args = {} } = params;
    if (method !== "tools/call" || typeof name !== "string" || !isRecord(args)) return undefined;
    if ("task" in params || "inputResponses" in params) return undefined;
    const context = { scope, declaresTasks, signal, inputResponses: {} };
    if (!this.#calls.waits(name, declaresTasks)) return respond(request, () => this.#calls.call(name, args, context));
    return this.#calls.mayAsk(name) ? undefined : this.#stream(request, name, args, context);
  }

  /** The answer to a call that waits, as an event stream that begins at once. */
  #stream(request: DirectRequest, name: string, args: Record<string, unknown>, context: CallContext): Response {
    // The answer begins before the tool is done.
    context.scope.line.hold();
    const meta = request.message.params._meta as { progressToken?: unknown } | undefined;
    const progressToken = meta?.progressToken;
    return eventStream(async (send, signal) => {
      const reportProgress = (progress: number, total: number, message: string) => {
        const params = { progressToken, progress, total, message };
        send({ jsonrpc: "2.0", method: "notifications/progress", params });
      };
      const streamed = { ...context, signal, ...(progressToken !== undefined && { reportProgress }) };
      const answer = await answerTo(request, () => this.#calls.call(name, args, streamed));
      if (answer) send(answer.message);
    }, context.signal);
  }

  async #constant({ message: { id, method }, era }: DirectRequest, sdk: () => Promise<Response>) {
    const key = `${era} ${method}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${known}}`);
    const response = await sdk();
    const text = await response.clone().text();
    // A 2025-era answer is an event stream of one event.
    const data = text.startsWith("{") ? text : text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
    const { result } = JSON.parse(data || "{}");
    if (result !== undefined) this.#constants.set(key, JSON.stringify(result));
    return response;
  }
}

async function respond(request: DirectRequest, call: () => Promise<object>): Promise<Response | undefined> {
  const answer = await answerTo(request, call);
  return answer && json(JSON.stringify(answer.message), answer.status);
}

/** The JSON-RPC message that answers a call, and its HTTP status; undefined where it is the SDK's to give. */
async function answerTo(
  { message: { id }, era }: DirectRequest,
  call: () => Promise<object>,
): Promise<{ message: object; status: number } | undefined> {
  try {
    const result = await call();
    // What is asked has to be something that the client can answer, which the SDK checks when it makes the call.
    if (isInputRequiredResult(result)) return undefined;
    const framed =
      era === "modern" ? { resultType: "complete", ...result, _meta: { [SERVER_INFO_META_KEY]: IDENTITY } } : result;
    return { message: { jsonrpc: "2.0", id, result: framed }, status: 200 };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code, message, data } = error;
    // The protocol gives this one error an HTTP status of its own; every other is an answer.
    return { message: { jsonrpc: "2.0", id, error: { code, message, data } }, status: code === -32021 ? 400 : 200 };
  }
}

function json(body: string, status = 200): Response {
  return new Response(body, { status, headers: { "content-type": "application/json" } });
}
