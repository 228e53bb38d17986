import {
  createMcpHandler,
  isJsonContentType,
  type McpServerFactory,
  readRequestBody,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Log } from "../log.ts";
import { authInfoOf, type RequestScope, scopeOf } from "../request.ts";
import type { RemoteStore } from "../resonate/store.ts";
import type { TaskHandles } from "../tasks/handle.ts";
import { declaresTasks, registerTaskMethods } from "../tasks/methods.ts";
import { TasksServer } from "../tasks/server.ts";
import { subscribe } from "../tasks/subscribe.ts";
import { TASKS } from "../tasks/task.ts";
import type { Tool } from "../tools/tool.ts";
import { type CallContext, Calls } from "./calls.ts";
import { asDirect, Direct } from "./direct.ts";
import { KEEP_ALIVE } from "./event-stream.ts";
import { CACHE, IDENTITY, INSTRUCTIONS } from "./identity.ts";

/** The largest request body that is read, in bytes. */
const MAX_BODY = 1_000_000;

/** Answers an MCP request. */
export type Mcp = (request: Request, scope: RequestScope) => Promise<Response>;

export interface McpOptions {
  store: RemoteStore;
  tools: readonly Tool[];
  /** Absent where no key seals task ids: then no tasks are offered. */
  handles: TaskHandles | undefined;
  log: Log;
}

/** Serves MCP over streamable HTTP, statelessly: the 2026-07-28 revision, and 2025-era clients on the same URL. */
export function createMcp({ store, tools, handles, log }: McpOptions): Mcp {
  const tasks = handles && { store, handles, log };
  const calls = new Calls(store, tools, tasks, log);
  const direct = new Direct(calls, tasks);
  const toolList = { tools: tools.map((tool) => tool.listing) };

  const createServer: McpServerFactory = ({ era }) => {
    const offersTasks = tasks !== undefined && era === "modern";
    const server = new TasksServer(IDENTITY, {
      capabilities: { tools: {}, ...(offersTasks && { extensions: { [TASKS]: {} } }) },
      instructions: INSTRUCTIONS,
      cacheHints: { "tools/list": CACHE, "server/discover": CACHE },
    });
    server.setRequestHandler("tools/list", () => toolList as never);
    server.setRequestHandler("tools/call", ({ params }, context) => {
      return calls.call(params.name, params.arguments ?? {}, callContextOf(context)) as never;
    });
    if (offersTasks) registerTaskMethods(server, tasks);
    return server;
  };
  const options = { maxRequestBodySize: MAX_BODY, keepAliveMs: KEEP_ALIVE };
  const plain = createMcpHandler(createServer, options);
  const streaming = createMcpHandler(createServer, { ...options, responseMode: "sse" });

  return async (request, scope) => {
    const body = await readJson(request);
    if (body.step === "sdk") return plain.fetch(body.request, { authInfo: authInfoOf(scope) });
    const { parsed } = body;
    const sdk = (handler: typeof plain) => handler.fetch(request, { parsedBody: parsed, authInfo: authInfoOf(scope) });

    const asked = asDirect(request, parsed);
    if (!asked) return sdk(plain);
    const { method, params } = asked.message;
    const { line } = scope;
    line.method = method;
    const isCall = method === "tools/call" && calls.has(String(params.name));
    if (isCall) line.tool = String(params.name);
    if (tasks && method === "subscriptions/listen") {
      return subscribe(tasks, IDENTITY, scope.caller, { request, message: asked.message }, () => sdk(plain));
    }
    const answer = await direct.answer(asked, scope, request.signal, () => sdk(plain));
    if (answer) return answer;
    // The answer to a call may be a stream, which begins before the tool is done.
    if (isCall) line.hold();
    const response = await sdk(isCall && calls.waits(String(params.name), asked.declaresTasks) ? streaming : plain);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) line.release();
    return response;
  };
}

type Body = { step: "parsed"; parsed: unknown } | { step: "sdk"; request: Request };

/** The request's body as JSON, read once; what cannot be had that way is the SDK's to refuse. */
async function readJson(request: Request): Promise<Body> {
  const { method, url, headers, signal } = request;
  const length = headers.get("content-length");
  if (method !== "POST" || !isJsonContentType(headers.get("content-type")) || Number(length) > MAX_BODY) {
    return { step: "sdk", request };
  }
  const text = length === null ? await readUnmeasured(request) : await request.text();
  try {
    return { step: "parsed", parsed: JSON.parse(text) };
  } catch {
    return { step: "sdk", request: new Request(url, { method, headers, body: text, signal }) };
  }
}

/** A body whose length was not declared; one that turns out too large is replaced by one that will be refused as such. */
async function readUnmeasured(request: Request): Promise<string> {
  const read = await readRequestBody(request, MAX_BODY);
  return read.tooLarge ? " ".repeat(MAX_BODY + 1) : read.text;
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
