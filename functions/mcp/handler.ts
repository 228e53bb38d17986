import type { Log } from "../log.ts";
import { CLIENT_CAPABILITIES } from "../protocol.ts";
import type { RequestScope } from "../request.ts";
import type { RemoteStore } from "../resonate/store.ts";
import type { TaskHandles } from "../tasks/handle.ts";
import { subscribe } from "../tasks/subscribe.ts";
import { TASKS } from "../tasks/task.ts";
import type { Tool } from "../tools/tool.ts";
import { Calls } from "./calls.ts";
import { Direct } from "./direct.ts";
import { IDENTITY } from "./identity.ts";
import { asMessage, asPlain, type Message } from "./plain.ts";
import type { createSdk } from "./sdk.ts";

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

  let loaded: ReturnType<typeof createSdk> | undefined;
  const loadSdk = async () => {
    loaded ??= (await import("./sdk.ts")).createSdk({ calls, tasks, maxBody: MAX_BODY });
    return loaded;
  };

  return async (request, scope) => {
    const body = await readJson(request);
    if (body.step === "sdk") return (await loadSdk())({ request: body.request, scope });
    const { parsed } = body;
    const sdk = async (streamed = false) => (await loadSdk())({ request, scope, parsedBody: parsed, streamed });

    const message = asMessage(parsed);
    if (!message) return sdk();
    const { method, params } = message;
    const { line } = scope;
    line.method = method;
    const isCall = method === "tools/call" && calls.has(String(params.name));
    if (isCall) line.tool = String(params.name);
    if (tasks && method === "subscriptions/listen") {
      return subscribe(tasks, IDENTITY, scope.caller, { request, message }, sdk);
    }
    const plain = asPlain(request.headers, message);
    const answer = plain && (await direct.answer(plain, scope, request.signal));
    if (answer) return answer;
    // The answer to a call may be a stream, which begins before the tool is done.
    if (isCall) line.hold();
    const response = await sdk(isCall && calls.waits(String(params.name), saysTasks(message)));
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) line.release();
    return response;
  };
}

type Body = { step: "parsed"; parsed: unknown } | { step: "sdk"; request: Request };

/** A media type that needs no closer look. */
const JSON_TYPE = /^application\/json(; *charset=utf-8)?$/i;

/** The request's body as JSON, read once; what cannot be had that way is the SDK's to refuse. */
async function readJson(request: Request): Promise<Body> {
  const { method, url, headers, signal } = request;
  const length = headers.get("content-length");
  const isJson = method === "POST" && (await isJsonType(headers.get("content-type")));
  if (!isJson || Number(length) > MAX_BODY) return { step: "sdk", request };
  const text = length === null ? await readUnmeasured(request) : await request.text();
  try {
    return { step: "parsed", parsed: JSON.parse(text) };
  } catch {
    return { step: "sdk", request: new Request(url, { method, headers, body: text, signal }) };
  }
}

async function isJsonType(type: string | null): Promise<boolean> {
  if (type !== null && JSON_TYPE.test(type)) return true;
  const { isJsonContentType } = await import("./sdk.ts");
  return isJsonContentType(type);
}

/** A body whose length was not declared; one that turns out too large is replaced by one that will be refused as such. */
async function readUnmeasured(request: Request): Promise<string> {
  const { readRequestBody } = await import("./sdk.ts");
  const read = await readRequestBody(request, MAX_BODY);
  return read.tooLarge ? " ".repeat(MAX_BODY + 1) : read.text;
}

/** Whether a request that is not plain says that its client understands tasks. */
function saysTasks({ params }: Message): boolean {
  const meta = params._meta as { [CLIENT_CAPABILITIES]?: { extensions?: Record<string, unknown> } } | undefined;
  return meta?.[CLIENT_CAPABILITIES]?.extensions?.[TASKS] !== undefined;
}
