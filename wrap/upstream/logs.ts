/** A wrapped server's log messages, for the client whose call they belong to, if it has asked for them. */

import { type CallContext, ErrorCode, ProtocolError } from "../../core/tools/index.ts";

/** The levels, lowest first. */
export const LOG_LEVELS: readonly string[] = "debug info notice warning error critical alert emergency".split(" ");

/** The key of a stored result's `_meta` that holds the log messages of its call. */
export const LOGS_META = "durable-mcp/logs";

export interface LogMessage {
  level: string;
  logger?: string;
  data: unknown;
}

const isLevel = (value: unknown): value is string => typeof value === "string" && LOG_LEVELS.includes(value);

/** The levels that clients of the 2025 revisions have set, by session. Nothing of a session is stored: each isolate remembers its own. */
const levels = new Map<string, string>();
const MAX_SESSIONS = 1_000;

/** `logging/setLevel`. @throws {ProtocolError} */
export async function setLevel({ level }: Record<string, unknown>, { session }: CallContext): Promise<object> {
  if (!isLevel(level)) throw new ProtocolError(ErrorCode.InvalidParams, `level: accepted are ${LOG_LEVELS.join(", ")}`);
  if (session !== undefined) {
    levels.delete(session);
    levels.set(session, level);
    for (const first of levels.keys()) if (levels.size > MAX_SESSIONS) levels.delete(first);
  }
  return {};
}

/** The lowest level that the caller has asked for; undefined if it receives no messages. */
export function levelFor({ session = "", logLevel, notify }: CallContext): string | undefined {
  if (!notify) return undefined;
  return isLevel(logLevel) ? logLevel : levels.get(session);
}

/** Sends the client the messages that came with a result. */
export function sendLogs(result: unknown, { notify }: CallContext): void {
  const messages = Object(Object(result)._meta)[LOGS_META];
  for (const message of Array.isArray(messages) ? messages : []) notify?.("notifications/message", message);
}
