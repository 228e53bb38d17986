/**
 * The methods of the server: its own, and those of its features. Plain requests are answered without the SDK, whose server and
 * transport cost several times as much as the call itself.
 */
import type { EdgeFeature } from "../../core/feature.ts";
import { isRecord } from "../../core/resonate/index.ts";
import {
  type DeclaredCapabilities,
  ErrorCode,
  type Identity,
  type Method,
  PROTOCOL_REVISION,
  ProtocolError,
  type RequestScope,
} from "../../core/tools/index.ts";
import type { ToolCalls } from "../calls/tool-calls.ts";
import { capabilities, LIST_CACHE, listsOf } from "./identity.ts";
import type { CallsInFlight } from "./in-flight.ts";
import { readJob } from "./job-resource.ts";
import { HANDSHAKE_PARAMS } from "./message.ts";
import { Responder } from "./respond.ts";
import { toolCall } from "./tool-call.ts";

const JSON_TYPE = { "content-type": "application/json" };

export type Methods = ReadonlyMap<string, Method>;

/** What the server offers. */
export interface Offer {
  identity: Identity;
  calls: ToolCalls;
  features: readonly EdgeFeature[];
}

export function createMethods({ identity, calls, features }: Offer, inFlight: CallsInFlight): Methods {
  const { info, instructions } = identity;
  const responder = new Responder(info);

  /** A method whose result is always the same: by era, serialized once. */
  const constant = (legacy: object | undefined, modern: object | undefined): Method => {
    const results = {
      legacy: JSON.stringify(legacy),
      modern: modern && JSON.stringify(responder.complete({ ...modern, ...LIST_CACHE })),
    };
    return {
      form: { params: [] },
      answer({ message: { id }, plain }) {
        const result = plain && results[plain.era];
        return result === undefined
          ? undefined
          : new Response(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`, { headers: JSON_TYPE });
      },
    };
  };
  const initialize: Method = {
    form: { params: HANDSHAKE_PARAMS },
    async answer({ message: { id, params }, plain, scope, sdk }) {
      const result = {
        protocolVersion: plain?.revision,
        capabilities: capabilities("legacy", features),
        serverInfo: info,
        instructions,
      };
      const response = plain?.revision ? Response.json({ jsonrpc: "2.0", id, result }) : await sdk();
      if (response.ok)
        response.headers.set("mcp-session-id", await sessionOf(Object(params.capabilities), features, scope));
      return response;
    },
  };
  const discovery = {
    supportedVersions: [PROTOCOL_REVISION],
    capabilities: capabilities("modern", features),
    instructions,
  };
  return new Map<string, Method>([
    ...Object.entries(listsOf(calls.listing, features)).map(
      ([method, result]) => [method, constant(result, result)] as const,
    ),
    ["initialize", initialize],
    ["ping", constant({}, undefined)],
    ["server/discover", constant(undefined, discovery)],
    ["resources/read", readResource(features)],
    ["tools/call", toolCall(calls, responder, inFlight)],
    ...features.flatMap(({ methods = {} }) =>
      Object.entries(methods).map(([name, method]) => [name, withExplainedOutage(method, calls)] as const),
    ),
  ]);
}

/** The method whose errors are in words for a model. */
function withExplainedOutage(method: Method, calls: ToolCalls): Method {
  const { handle } = method;
  if (!handle) return method;
  return { ...method, handle: async (params, request) => calls.explainOutage(handle(params, request), request.signal) };
}

/** The id of a new session of a client of 2025. Nothing else of the session exists. */
async function sessionOf(
  { elicitation }: DeclaredCapabilities,
  features: readonly EdgeFeature[],
  scope: RequestScope,
): Promise<string> {
  for (const feature of isRecord(elicitation) ? features : []) {
    const session = await feature.session?.({ elicitation }, scope);
    if (session !== undefined) return session;
  }
  return crypto.randomUUID();
}

/** `resources/read`: resources of features, or else jobs. */
function readResource(features: readonly EdgeFeature[]): Method {
  const providers = features.flatMap(({ resources }) => resources ?? []);
  const providerOf = (uri: string) => providers.find((provider) => provider.costOf(uri));
  return {
    cost: ({ uri }) => (typeof uri === "string" && providerOf(uri)?.costOf(uri)) || { access: ["read"] },
    async handle({ uri }, request) {
      if (typeof uri !== "string")
        throw new ProtocolError(ErrorCode.InvalidParams, "Invalid params: uri: a text is required");
      const provider = providerOf(uri);
      return provider ? provider.read(uri, request) : readJob(request.scope.store, uri, request.signal);
    },
  };
}
