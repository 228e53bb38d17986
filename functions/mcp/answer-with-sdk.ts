/** Answers requests with the SDK: those that are not plain, or that no row of the method table answers. */
import {
  createMcpHandler,
  type JSONRPCRequest,
  type Result,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Era } from "../../core/feature.ts";
import {
  abilitiesOf,
  type CallRequest,
  CLIENT_CAPABILITIES,
  type DeclaredCapabilities,
  ErrorCode,
  isInputRequired,
  LOG_LEVEL,
  ProtocolError,
  type RequestScope,
} from "../../core/tools/index.ts";
import { callMetaIn, reporting } from "../calls/call-meta.ts";
import { boundedStream, KEEP_ALIVE_MS } from "../http/event-stream.ts";
import { MAX_BODY } from "./body.ts";
import { capabilities, LIST_CACHE, listsOf } from "./identity.ts";
import type { Methods, Offer } from "./methods.ts";

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
const ANY_OBJECT = z.looseObject({});

/**
 * Answers with the SDK. Each request has its own server and handler: a handler holds its requests in progress, and a shared one
 * would hold those whose work the platform has cancelled forever.
 */
export function createSdk(
  { calls, features, identity }: Offer,
  methods: Methods,
): (request: SdkRequest) => Promise<Response> {
  const lists = {
    modern: listsOf(calls.listing("modern"), features),
    legacy: listsOf(calls.listing("legacy"), features),
  };
  const cacheHints = Object.fromEntries(
    ["server/discover", ...Object.keys(lists.modern)].map((method) => [method, LIST_CACHE]),
  );
  const createServer = (era: Era, scope: RequestScope) => {
    const server = new OurServer(identity.info, {
      capabilities: capabilities(era, features),
      instructions: identity.instructions,
      cacheHints,
    });
    for (const [method, result] of Object.entries(lists[era])) {
      server.setRequestHandler(method as "tools/list", () => result as never);
    }
    server.setRequestHandler("tools/call", ({ params }, context) => {
      return calls.call(params.name, params.arguments ?? {}, requestOfSdk(context, scope)) as never;
    });
    for (const [name, { handle, era: only = era }] of methods) {
      if (!handle || only !== era) continue;
      server.setRequestHandler(
        name,
        { params: ANY_OBJECT },
        (params, context) => handle(params, requestOfSdk(context, scope)) as Promise<Result>,
      );
    }
    return server;
  };
  const options = { maxRequestBodySize: MAX_BODY, keepAliveMs: KEEP_ALIVE_MS };
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

function requestOfSdk(context: ServerContext, scope: RequestScope): CallRequest {
  const { signal, _meta, envelope, inputResponses, droppedInputResponseKeys = [], notify } = context.mcpReq;
  const meta = { ...envelope } as { [LOG_LEVEL]?: unknown; [CLIENT_CAPABILITIES]?: DeclaredCapabilities };
  const { [LOG_LEVEL]: logLevel, [CLIENT_CAPABILITIES]: declared } = meta;
  const hasResponses = inputResponses !== undefined || droppedInputResponseKeys.length > 0;
  // The SDK drops values that are not bare response objects.
  const withoutResponses = Object.fromEntries(droppedInputResponseKeys.map((key) => [key, undefined]));
  // Delivery fails only when the client has left.
  const send = (method: string, params: object) => void notify({ method, params } as never).catch(() => {});
  return {
    notify: send,
    scope,
    ...abilitiesOf(declared),
    signal,
    inputResponses: inputResponses ?? {},
    ...(hasResponses && { rawResponses: { ...inputResponses, ...withoutResponses } }),
    cancelsByLeaving: declared !== undefined,
    ...callMetaIn({ ..._meta }),
    ...(logLevel !== undefined && { logLevel }),
    requestState: context.mcpReq.requestState<string>(),
    ...reporting(_meta?.progressToken, send),
  };
}

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/**
 * A server whose tools may answer with a task, or with content of a wrapped server that the SDK does not know. The SDK still
 * judges requests, and results that ask the client. Malformed parameters are "invalid params" here, where the SDK reports an
 * internal error.
 */
class OurServer extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    return async (request, context) => {
      let answer: Result | undefined;
      const validate = super._wrapHandler(method, async (...args) => {
        const result = await handler(...args);
        if (method !== "tools/call" || isInputRequired(result)) return result;
        answer = result;
        return { content: [] };
      });
      const result = await validate(request, context).catch((error) => {
        throw invalidParams(error) ?? error;
      });
      return answer ?? result;
    };
  }
}

/** The findings of the SDK's parser, which it throws as an error whose message is a JSON list of issues. */
function invalidParams({ name, message }: Error): ProtocolError | undefined {
  if (name !== "Error" || !message.startsWith("[")) return undefined;
  const issues = JSON.parse(message) as { path: string[]; message: string }[];
  const problems = issues.map(({ path, message }) => `${path.slice(1).join(".")}: ${message}`).join("; ");
  return new ProtocolError(ErrorCode.InvalidParams, `Invalid params: ${problems}`.slice(0, 500));
}
