/**
 * Reads JSON-RPC requests. A request is *plain* when it is certainly well-formed and holds nothing but what clients ordinarily
 * send. Only plain requests are answered without the SDK, which alone decides what is wrong with a request. So everything
 * accepted here must be accepted by the SDK too, and mean the same there (`test/fuzz`).
 */
import * as z from "zod";
import { toBase64 } from "../../core/resonate/index.ts";
import {
  abilitiesOf,
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  type Message,
  type Plain,
  type PlainForm,
  PROTOCOL_REVISION,
  PROTOCOL_VERSION_META,
} from "../../core/tools/index.ts";

/** The revisions with a handshake. */
export const LegacyRevision = z.enum(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);

const MessageSchema = z.strictObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.int()]),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
});

const progressToken = z.union([z.string(), z.int()]).optional();
const nothing = z.strictObject({}).optional();

const ClientInfo = z.strictObject({ name: z.string(), title: z.string().optional(), version: z.string() });
const ClientCapabilities = z.strictObject({
  elicitation: z.strictObject({ form: nothing, url: nothing }).optional(),
  extensions: z.record(z.string(), z.looseObject({})).optional(),
  roots: z.strictObject({ listChanged: z.boolean().optional() }).optional(),
  sampling: z.strictObject({ context: nothing, tools: nothing }).optional(),
});

const ModernMeta = z.strictObject({
  [PROTOCOL_VERSION_META]: z.literal(PROTOCOL_REVISION),
  [CLIENT_INFO]: ClientInfo.optional(),
  [CLIENT_CAPABILITIES]: ClientCapabilities,
  progressToken,
});
const LegacyMeta = z.looseObject({ progressToken }).optional();

/** The first request of a 2025-era client. */
const Handshake = z.object({
  protocolVersion: LegacyRevision,
  capabilities: ClientCapabilities,
  clientInfo: ClientInfo,
});
export const HANDSHAKE_PARAMS: readonly string[] = Object.keys(Handshake.shape);

/** What a 2025-era client sends after its handshake. */
const InitializedNotification = z.strictObject({
  jsonrpc: z.literal("2.0"),
  method: z.literal("notifications/initialized"),
  params: nothing,
});

/** The body as a JSON-RPC request, or undefined. */
export function asMessage(body: unknown): Message | undefined {
  return MessageSchema.safeParse(body).data;
}

/** Whether a request is the plain notification that a client is ready, which needs no action. */
export function isInitialized(headers: Headers, body: unknown): boolean {
  return isLegacy(headers) && InitializedNotification.safeParse(body).success;
}

/** What a plain request says; undefined for a request that the SDK has to judge. */
export function asPlain(headers: Headers, message: Message, form: PlainForm): Plain | undefined {
  const { _meta, ...rest } = message.params;
  if (!Object.keys(rest).every((key) => form.params.includes(key))) return undefined;
  return headers.get("mcp-protocol-version") === PROTOCOL_REVISION
    ? asModern(headers, message, form)
    : asLegacy(headers, message);
}

function asModern(headers: Headers, { method, params }: Message, { namedBy }: PlainForm): Plain | undefined {
  if (headers.get("mcp-method") !== method) return undefined;
  const name = headers.get("mcp-name");
  const lacksName = name === null && mayLackName(method);
  // A header that begins like this is an encoded name.
  if (namedBy && !lacksName && (name === null || name !== params[namedBy] || name.startsWith("=?"))) return undefined;
  const meta = ModernMeta.safeParse(params._meta).data;
  if (!meta) return undefined;
  return { era: "modern", progressToken: meta.progressToken, ...abilitiesOf(meta[CLIENT_CAPABILITIES]) };
}

/** The most names in the `_meta` of a plain request. */
const MAX_META = 20;

function asLegacy(headers: Headers, { method, params }: Message): Plain | undefined {
  if (!isLegacy(headers)) return undefined;
  // The SDK judges entries of the protocol itself, and more entries than hosts usually add.
  const names = Object.keys(Object(params._meta));
  if (names.length > MAX_META || names.some((name) => name.startsWith("io.modelcontextprotocol/"))) return undefined;
  const { success, data: meta = {} } = LegacyMeta.safeParse(params._meta);
  if (!success) return undefined;
  // The extensions of tasks and cards are unknown to clients of 2025.
  const plain = { era: "legacy", progressToken: meta.progressToken, meta, ...abilitiesOf() } as const;
  if (method !== "initialize") return plain;
  const handshake = Handshake.safeParse(params);
  return handshake.success ? { ...plain, revision: handshake.data.protocolVersion } : undefined;
}

/** Matches an `Accept` with both types of answers, JSON and streams, as the protocol asks for it. */
export const ACCEPT_PATTERN = /application\/json.*text\/event-stream|text\/event-stream.*application\/json/s;

/** Whether the headers are those that clients of 2025 send. */
function isLegacy(headers: Headers): boolean {
  // Before the handshake a request names no revision.
  const version = headers.get("mcp-protocol-version");
  if (version !== null && !LegacyRevision.safeParse(version).success) return false;
  return ACCEPT_PATTERN.test(headers.get("accept") ?? "");
}

/**
 * Whether a modern request for this method is served without its `Mcp-Name` header. Clients must send it, but bridges from
 * stdio do not; the specification obliges the server to refuse only `tools/call`, `resources/read` and `prompts/get` for it.
 */
const mayLackName = (method: string): boolean => /^tasks\/(get|update|cancel)$/.test(method);

/** The request for the SDK, with `Mcp-Name` added where it may be missing: the SDK refuses requests without the header. */
export function withName(request: Request, { method, params: { taskId } }: Message): Request {
  const { headers, url, signal } = request;
  if (!mayLackName(method) || typeof taskId !== "string" || headers.has("mcp-name")) return request;
  const complete = new Headers(headers);
  complete.set("mcp-name", headerValue(taskId));
  return new Request(url, { method: request.method, headers: complete, signal });
}

/** Text as a header's value, encoded where a header cannot hold it or would be read as something else. */
function headerValue(text: string): string {
  if (/^[\x21-\x7e]*$/.test(text) && !text.startsWith("=?")) return text;
  return `=?base64?${toBase64(text)}?=`;
}
