/**
 * The few parts of the protocol that simple requests need. Loading the SDK and building its schemas takes longer than everything
 * else before an isolate's first answer, so the SDK is loaded by the first request that needs it (`mcp/answer-with-sdk.ts`). The
 * types are the SDK's, so these constants cannot differ from its own.
 */
import type * as sdk from "@modelcontextprotocol/server";

export type {
  CallToolResult,
  InputRequiredResult,
  OAuthProtectedResourceMetadata,
  ServerContext,
  ToolAnnotations,
} from "@modelcontextprotocol/server";

/** The revision with a per-request envelope. */
export const PROTOCOL_REVISION = "2026-07-28";

/** Keys of a request's or an answer's `_meta`. */
export const PROTOCOL_VERSION_META: typeof sdk.PROTOCOL_VERSION_META_KEY = "io.modelcontextprotocol/protocolVersion";
export const CLIENT_INFO: typeof sdk.CLIENT_INFO_META_KEY = "io.modelcontextprotocol/clientInfo";
export const CLIENT_CAPABILITIES: typeof sdk.CLIENT_CAPABILITIES_META_KEY =
  "io.modelcontextprotocol/clientCapabilities";
export const SERVER_INFO: typeof sdk.SERVER_INFO_META_KEY = "io.modelcontextprotocol/serverInfo";
/** The key of an answer's `_meta` that names the job which the answer describes; cards follow that job. */
export const JOB_META = "durable-mcp/job";
/** The key of an answer's `_meta` with the references to its files. */
export const FILES_META = "durable-mcp/files";
/** The key of a request's `_meta` with labels for the jobs that the call starts. */
export const LABELS_META = "durable-mcp/labels";
/** The key of a request's `_meta` that asks for log messages. */
export const LOG_LEVEL: typeof sdk.LOG_LEVEL_META_KEY = "io.modelcontextprotocol/logLevel";
/**
 * Matches the keys of `_meta` that belong to this server, or to the protocol between it and its clients. The lookahead keeps it
 * from searching a long key without a slash again and again.
 */
export const OWN_KEY_PATTERN =
  /^((view_url|ui)$|durable-mcp\/|(?=[^/]*\/)([^/]*\.)?(modelcontextprotocol|mcp)(\.[^/]*)?\/)/;
/** The extension MCP Apps, with which hosts show pages of servers. */
export const UI_EXTENSION = "io.modelcontextprotocol/ui";

/** The extension of tasks. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

export const CARD_MIME_TYPE = "text/html;profile=mcp-app";
export const SUBSCRIPTION_ID: typeof sdk.SUBSCRIPTION_ID_META_KEY = "io.modelcontextprotocol/subscriptionId";

export const ErrorCode = {
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  MissingRequiredClientCapability: -32021,
} as const;

/** A JSON-RPC error: the SDK answers with its code, message and data. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
