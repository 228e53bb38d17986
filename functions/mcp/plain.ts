/**
 * Which requests are plain: well-formed beyond any doubt, with nothing in them but what clients ordinarily send. They
 * can be answered without the SDK, which decides about all others: there is one authority on what is wrong with a
 * request. So what is accepted here must be accepted by the SDK too, and means the same there (`test/fuzz`).
 */
import * as z from "zod";
import { CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION_META, REVISION } from "../../core/tools/mcp.ts";
import { showsCards, showsForms, TASKS } from "../tasks/task.ts";

/** The revisions with a handshake. */
export const LegacyRevision = z.enum(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);

/** A JSON-RPC request, of whatever kind. */
const PlainMessage = z.strictObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.int()]),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
});
export type PlainMessage = z.infer<typeof PlainMessage>;

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
  [PROTOCOL_VERSION_META]: z.literal(REVISION),
  [CLIENT_INFO]: ClientInfo.optional(),
  [CLIENT_CAPABILITIES]: ClientCapabilities,
  progressToken,
});
const LegacyMeta = z.strictObject({ progressToken }).optional();

/** What a 2025-era client begins with. */
const Handshake = z.object({
  protocolVersion: LegacyRevision,
  capabilities: ClientCapabilities,
  clientInfo: ClientInfo,
});

/** By method: the parameter that a modern request repeats in its `Mcp-Name` header. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["tasks/get", "taskId"],
]);

/**
 * Whether a modern request of this method is served without its `Mcp-Name` header. Clients owe it, and bridges from stdio
 * send none; the specification has the server refuse what lacks it for `tools/call`, `resources/read` and `prompts/get` only.
 */
const mayLackName = (method: string): boolean => /^tasks\/(get|update|cancel)$/.test(method);

/** The request with the `Mcp-Name` header that it lacks and may lack, read off its message; for the SDK, which refuses it. */
export function named(request: Request, { method, params }: PlainMessage): Request {
  const { headers, url, signal } = request;
  const { taskId } = params;
  if (!mayLackName(method) || typeof taskId !== "string" || headers.has("mcp-name")) return request;
  const complete = new Headers(headers);
  complete.set("mcp-name", headerValue(taskId));
  return new Request(url, { method: request.method, headers: complete, signal });
}

/** Text as a header's value; what no header can hold, and what stands for something else, is encoded. */
function headerValue(text: string): string {
  if (/^[\x21-\x7e]*$/.test(text) && !text.startsWith("=?")) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

/** Parameters, besides `_meta`, of the methods that are answered without the SDK. */
const PARAMS: ReadonlyMap<string, readonly string[]> = new Map([
  ["initialize", Object.keys(Handshake.shape)],
  ["tools/call", ["name", "arguments"]],
  ["tools/list", []],
  ["tasks/get", ["taskId"]],
  ["server/discover", []],
  ["resources/list", []],
  ["resources/templates/list", []],
  ["ping", []],
]);

/** A plain request. */
export interface PlainRequest {
  message: PlainMessage;
  era: "modern" | "legacy";
  progressToken?: string | number | undefined;
  /** Whether the request declared that its client understands tasks, and that it shows forms to its user. */
  declaresTasks: boolean;
  showsForms: boolean;
  /** Whether it declared that its client shows cards. */
  showsCards: boolean;
  /** The revision that a handshake asks for. */
  revision?: string;
}

/** The body as a JSON-RPC request, or undefined. */
export function asMessage(body: unknown): PlainMessage | undefined {
  return PlainMessage.safeParse(body).data;
}

/** What a 2025-era client sends when it has been answered its `initialize`. */
const Initialized = z.strictObject({
  jsonrpc: z.literal("2.0"),
  method: z.literal("notifications/initialized"),
  params: nothing,
});

/** Whether a request is a plain notification that a client is ready, which is taken and means nothing here. */
export function isReady(headers: Headers, body: unknown): boolean {
  return isLegacy(headers) && Initialized.safeParse(body).success;
}

/** The request as a plain one, or undefined: then it is the SDK's. */
export function asPlain(headers: Headers, message: PlainMessage): PlainRequest | undefined {
  const { method, params } = message;
  const { _meta, ...rest } = params;
  const known = PARAMS.get(method);
  if (!known || !Object.keys(rest).every((key) => known.includes(key))) return undefined;
  return headers.get("mcp-protocol-version") === REVISION
    ? asModern(headers, message, _meta)
    : asLegacy(headers, message, _meta);
}

function asModern(headers: Headers, message: PlainMessage, _meta: unknown): PlainRequest | undefined {
  const { method, params } = message;
  if (headers.get("mcp-method") !== method) return undefined;
  const namedBy = NAMED_BY.get(method);
  const name = headers.get("mcp-name");
  const isLacking = name === null && mayLackName(method);
  // A header beginning like this stands for another name than it spells.
  if (namedBy && !isLacking && (name === null || name !== params[namedBy] || name.startsWith("=?"))) return undefined;
  const meta = ModernMeta.safeParse(_meta).data;
  if (!meta) return undefined;
  const declared = meta[CLIENT_CAPABILITIES];
  const declaresTasks = declared.extensions?.[TASKS] !== undefined;
  return {
    message,
    era: "modern",
    progressToken: meta.progressToken,
    declaresTasks,
    showsForms: showsForms(declared),
    showsCards: showsCards(declared),
  };
}

/** What a client of 2025 can do of what tasks need. */
const OF_NEITHER = { declaresTasks: false, showsForms: false, showsCards: false } as const;

function asLegacy(headers: Headers, message: PlainMessage, _meta: unknown): PlainRequest | undefined {
  if (!isLegacy(headers)) return undefined;
  const meta = LegacyMeta.safeParse(_meta);
  if (!meta.success) return undefined;
  const request = { message, era: "legacy", progressToken: meta.data?.progressToken, ...OF_NEITHER } as const;
  if (message.method !== "initialize") return request;
  const handshake = Handshake.safeParse(message.params);
  return handshake.success ? { ...request, revision: handshake.data.protocolVersion } : undefined;
}

/** Whether the headers are those that clients of 2025 send. */
function isLegacy(headers: Headers): boolean {
  // A request that names no revision, as before the handshake, is taken for one of an early revision.
  const version = headers.get("mcp-protocol-version");
  if (version !== null && !LegacyRevision.safeParse(version).success) return false;
  const accept = headers.get("accept") ?? "";
  return accept.includes("application/json") && accept.includes("text/event-stream");
}
