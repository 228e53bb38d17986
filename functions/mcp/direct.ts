/**
 * The short way for plain requests, which come most often: a `tools/call`, `tasks/get`, `tools/list`, `server/discover`
 * or `initialize` is answered without the SDK, whose server and transport for it cost several times what the call itself
 * does. A tool that waits answers with a stream of its own, unless it may ask its caller something.
 */

import { ErrorCode, isInputRequired, ProtocolError, REVISION, SERVER_INFO } from "../../core/tools/mcp.ts";
import { eventStream } from "../http/event-stream.ts";
import type { RequestScope } from "../http/request.ts";
import { TEMPLATES } from "../resources/templates.ts";
import { getTask, type TaskService } from "../tasks/service.ts";
import type { CallRequest, Calls } from "./calls.ts";
import { CACHE, capabilities, type Identity } from "./identity.ts";
import type { PlainRequest } from "./plain.ts";

/** Jobs are resources that are found by their names. */
const NO_RESOURCES = { resources: [] };
const ALL_TEMPLATES = { resourceTemplates: TEMPLATES };

export class Direct {
  readonly #calls: Calls;
  readonly #tasks: TaskService | undefined;
  readonly #identity: Identity;
  /** The results that are the same for every request of an era, as JSON, by era and method. */
  readonly #constants: ReadonlyMap<string, string>;

  constructor(calls: Calls, tasks: TaskService | undefined, identity: Identity) {
    this.#calls = calls;
    this.#tasks = tasks;
    this.#identity = identity;
    const tools = calls.listing;
    const discovered = {
      supportedVersions: [REVISION],
      capabilities: capabilities(tasks !== undefined),
      instructions: identity.instructions,
    };
    this.#constants = new Map([
      ["legacy tools/list", JSON.stringify({ tools })],
      ["modern tools/list", JSON.stringify(complete({ tools, ...CACHE }, identity))],
      ["modern server/discover", JSON.stringify(complete({ ...discovered, ...CACHE }, identity))],
      // Hosts ask for these as soon as they are connected.
      ["legacy resources/list", JSON.stringify(NO_RESOURCES)],
      ["modern resources/list", JSON.stringify(complete({ ...NO_RESOURCES, ...CACHE }, identity))],
      ["legacy resources/templates/list", JSON.stringify(ALL_TEMPLATES)],
      ["modern resources/templates/list", JSON.stringify(complete({ ...ALL_TEMPLATES, ...CACHE }, identity))],
      ["legacy ping", "{}"],
    ]);
  }

  /** The answer, or undefined where it is the SDK's to give. */
  async answer(request: PlainRequest, scope: RequestScope, signal: AbortSignal): Promise<Response | undefined> {
    const { message, era, declaresTasks, showsForms, showsCards, revision } = request;
    const { id, method, params } = message;
    const constant = this.#constants.get(`${era} ${method}`);
    if (constant !== undefined) return json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${constant}}`);
    if (method === "initialize" && revision !== undefined) {
      return this.#respond(request, async () => handshake(revision, this.#identity));
    }
    if (method === "tasks/get" && era === "modern" && declaresTasks && this.#tasks) {
      const tasks = this.#tasks;
      return this.#respond(request, () => getTask(tasks, params.taskId, { ...scope, signal, showsForms }));
    }
    const { name, arguments: args = {} } = params;
    if (method !== "tools/call" || typeof name !== "string" || !isRecord(args) || !this.#calls.has(name)) {
      return undefined;
    }
    const context = { scope, declaresTasks, showsForms, showsCards, signal, inputResponses: {} };
    if (!this.#calls.waits(name, declaresTasks)) {
      return this.#respond(request, () => this.#calls.call(name, args, context));
    }
    return this.#calls.mayAsk(name) ? undefined : this.#stream(request, name, args, context);
  }

  /** The answer to a call that waits, as an event stream that begins at once. */
  #stream(request: PlainRequest, name: string, args: Record<string, unknown>, context: CallRequest): Response {
    // The answer begins before the tool is done.
    context.scope.line.hold();
    const { progressToken } = request;
    return eventStream(
      async (send, signal) => {
        const reportProgress = (progress: number, total: number, message: string) => {
          const params = { progressToken, progress, total, message };
          send({ jsonrpc: "2.0", method: "notifications/progress", params });
        };
        const streamed = { ...context, signal, ...(progressToken !== undefined && { reportProgress }) };
        const answer = await answerTo(request, this.#identity, () => this.#calls.call(name, args, streamed));
        if (answer) send(answer.message);
      },
      context.signal,
      context.scope,
    );
  }

  async #respond(request: PlainRequest, call: () => Promise<object>): Promise<Response | undefined> {
    const answer = await answerTo(request, this.#identity, call);
    return answer && json(JSON.stringify(answer.message), answer.status);
  }
}

/** The JSON-RPC message that answers a call, and its HTTP status; undefined where it is the SDK's to give. */
async function answerTo(
  { message: { id }, era }: PlainRequest,
  identity: Identity,
  call: () => Promise<object>,
): Promise<{ message: object; status: number } | undefined> {
  try {
    const result = await call();
    // What is asked has to be something that the client can answer, which the SDK checks when it makes the call.
    if (isInputRequired(result)) return undefined;
    return {
      message: { jsonrpc: "2.0", id, result: era === "modern" ? complete(result, identity) : result },
      status: 200,
    };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code, message, data } = error;
    // The protocol gives this one error an HTTP status of its own; every other is an answer.
    return {
      message: { jsonrpc: "2.0", id, error: { code, message, data } },
      status: code === ErrorCode.MissingRequiredClientCapability ? 400 : 200,
    };
  }
}

/** What a 2025-era client is told about the server, in the revision that it asked for. */
function handshake(protocolVersion: string, { info, instructions }: Identity): object {
  return { protocolVersion, capabilities: capabilities(false), serverInfo: info, instructions };
}

/** A result as the 2026-07-28 revision has it. */
function complete(result: object, { info }: Identity): object {
  const { _meta } = result as { _meta?: object };
  return { resultType: "complete", ...result, _meta: { ..._meta, [SERVER_INFO]: info } };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function json(body: string, status = 200): Response {
  return new Response(body, { status, headers: { "content-type": "application/json" } });
}
