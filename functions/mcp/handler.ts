import type { Tool } from "../../core/author/tool.ts";
import { CLIENT_CAPABILITIES } from "../../core/tools/mcp.ts";
import type { EdgeLog } from "../http/log.ts";
import type { Access, RequestScope } from "../http/request.ts";
import type { RequestLine } from "../http/request-line.ts";
import type { Pages } from "../pages/sessions.ts";
import { Cards } from "../resources/cards.ts";
import type { TaskHandles } from "../tasks/handle.ts";
import { subscribeToTasks } from "../tasks/subscribe.ts";
import { TASKS } from "../tasks/task.ts";
import { serveBatch } from "./batch.ts";
import { MAX_BODY, notAllowed, readBody } from "./body.ts";
import { type CallRules, Calls } from "./calls.ts";
import { Direct } from "./direct.ts";
import type { Identity } from "./identity.ts";
import { loadSdk } from "./load-sdk.ts";
import { asMessage, asPlain, isReady, named, type PlainMessage } from "./plain.ts";
import type { createSdk } from "./sdk.ts";
import { weightOf } from "./weight.ts";

/** Answers an MCP request. */
export type Mcp = (request: Request, scope: RequestScope, admit: Admit) => Promise<Response>;

/**
 * Whether what a request asks for may be done: `weight` is what it costs, of which 1, for the request itself, has been
 * counted. The answer that refuses it, or undefined.
 */
export type Admit = (weight: number, demand: Demand) => Promise<Response | undefined>;

export interface Demand {
  /** What its messages do with jobs. */
  access: ReadonlySet<Access>;
  /** Whether it may be answered with a stream. */
  streams: boolean;
}

export interface McpOptions {
  tools: readonly Tool[];
  identity: Identity;
  /** Absent where no key seals task ids: then no tasks are offered. */
  handles: TaskHandles | undefined;
  /** For how long jobs are kept after their end where they do not say, in milliseconds; undefined: for ever, or not known. */
  kept: number | undefined;
  log: EdgeLog;
  /** Who knows the addresses of jobs' pages, and the files of which pages and cards are made, if there are any. */
  pages: Pick<Pages, "urlOf" | "files">;
  policy: CallRules;
}

/** What the methods besides `tools/call` do with jobs. */
const ACCESS: ReadonlyMap<string, Access> = new Map([
  ["resources/read", "read"],
  ["tasks/get", "read"],
  ["subscriptions/listen", "read"],
  ["tasks/update", "write"],
  ["tasks/cancel", "write"],
]);

/** Serves MCP over streamable HTTP, statelessly: the 2026-07-28 revision, and 2025-era clients on the same URL. */
export function createMcp({ tools, identity, handles, kept, log, pages, policy }: McpOptions): Mcp {
  const tasks = handles && { handles, log, kept };
  const cards = pages.files && new Cards(pages.files, identity.info.name, tools);
  const calls = new Calls(cards?.tools ?? tools, { tasks, log, pages, policy });
  const direct = new Direct(calls, tasks, identity);

  let loaded: ReturnType<typeof createSdk> | undefined;
  const bySdk = async () => {
    if (!loaded) {
      const [own, sdk] = await Promise.all([import("./sdk.ts"), loadSdk()]);
      loaded = own.createSdk(sdk, { calls, tasks, identity, cards, maxBody: MAX_BODY });
    }
    return loaded;
  };

  /** The tool that a message calls, if there is one. */
  const toolOf = ({ method, params }: PlainMessage) =>
    method === "tools/call" && typeof params.name === "string" && calls.has(params.name) ? params.name : undefined;

  const accessOf = (message: PlainMessage): Access | undefined => {
    const tool = toolOf(message);
    if (tool !== undefined) return calls.accessOf(tool);
    // To read what a tool refers to starts a job.
    const { method, params } = message;
    return method === "resources/read" && calls.reads(params.uri) ? "write" : ACCESS.get(method);
  };

  const note = (line: RequestLine, message: PlainMessage): string | undefined => {
    const tool = toolOf(message);
    line.method = message.method;
    if (tool !== undefined) line.tool = tool;
    return tool;
  };

  const streams = (message: PlainMessage): boolean =>
    message.method === "subscriptions/listen" || calls.waits(toolOf(message) ?? "", saysTasks(message));

  /** Answers one message, which may be anything that is JSON. */
  const serve = async (request: Request, parsed: unknown, scope: RequestScope): Promise<Response> => {
    const message = asMessage(parsed);
    const sdk = async (streamed = false) =>
      (await bySdk())({ request: message ? named(request, message) : request, scope, parsedBody: parsed, streamed });
    if (!message) return isReady(request.headers, parsed) ? new Response(null, { status: 202 }) : sdk();
    const { line } = scope;
    const tool = note(line, message);
    if (tasks && message.method === "subscriptions/listen") {
      return subscribeToTasks(tasks, identity.info, scope, { request, message }, sdk);
    }
    const plain = asPlain(request.headers, message);
    if (tool === undefined) return (plain && (await direct.answer(plain, scope, request.signal))) ?? sdk();
    const answer = plain && (await direct.answer(plain, scope, request.signal));
    if (answer) return answer;
    // The answer to a call may be a stream, which begins before the tool is done.
    line.hold();
    return releasing(await sdk(calls.waits(tool, saysTasks(message))), () => line.release());
  };

  return async (request, scope, admit) => {
    // As clients of 2025 ask for a stream, or end a session, of which there are none.
    if (request.method === "GET" || request.method === "DELETE") return notAllowed();
    const body = await readBody(request);
    if (body.step === "refused") return body.response;
    if (body.step === "sdk") return (await bySdk())({ request: body.request, scope });
    const { parsed } = body;
    const messages = (Array.isArray(parsed) ? parsed : [parsed])
      .map(asMessage)
      .filter((message) => message !== undefined);
    const weight = messages.reduce((sum, { method, params }) => sum + weightOf(method, params), 0);
    const access = new Set(messages.map(accessOf).filter((access) => access !== undefined));
    if (!Array.isArray(parsed)) {
      for (const message of messages) note(scope.line, message);
      return (await admit(weight, { access, streams: messages.some(streams) })) ?? serve(request, parsed, scope);
    }
    const waiting = messages.filter((message) => calls.waits(toolOf(message) ?? "", false)).length;
    // What is no request costs as much as one.
    const batch = { parsed, weight: weight + parsed.length - messages.length, waiting };
    return serveBatch(request, batch, scope, {
      admit: (weight) => admit(weight, { access, streams: true }),
      serve: (member, memberScope) => serve(request, member, memberScope),
      sdk: async () => (await bySdk())({ request, scope, parsedBody: parsed }),
    });
  };
}

/** A response that calls `onEnd` once it is over: a stream when it ends or its reader has gone, any other at once. */
function releasing(response: Response, onEnd: () => void): Response {
  if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
    onEnd();
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        controller.error(error);
      }
    },
    cancel(reason) {
      onEnd();
      return reader.cancel(reason);
    },
  });
  return new Response(body, response);
}

/** Whether a request that is not plain says that its client understands tasks. */
function saysTasks({ params }: PlainMessage): boolean {
  const meta = params._meta as { [CLIENT_CAPABILITIES]?: { extensions?: Record<string, unknown> } } | undefined;
  return meta?.[CLIENT_CAPABILITIES]?.extensions?.[TASKS] !== undefined;
}
