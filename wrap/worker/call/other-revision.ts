/** Recognizes a tool that the newest revision cannot serve and an older one can. */
import { ProtocolErrorCode } from "@modelcontextprotocol/client";
import { PROTOCOL_REVISION } from "../../../core/tools/index.ts";
import type { CallEvent } from "./call-in-flight.ts";

/** The codes of protocol errors that are about the revision. */
const REVISION_ERROR_CODES: readonly number[] = [
  ProtocolErrorCode.MissingRequiredClientCapability,
  ProtocolErrorCode.UnsupportedProtocolVersion,
];

type FailureEvent = Extract<CallEvent, { kind: "result" | "error" }>;

/** Whether an answer says that the 2026-07-28 revision cannot serve the call. */
export function revisionFails(event: CallEvent): event is FailureEvent {
  if (event.kind === "error") return isRefusal(event) || mentionsRevision(event.message);
  if (event.kind !== "result" || event.result.isError !== true) return false;
  const { content } = event.result;
  return Array.isArray(content) && content.some((part) => mentionsRevision(String(part?.text)));
}

/** Whether the server has refused the call before any work was done; a tool that fails may have done some of its work. */
export const isRefusal = (event: FailureEvent): boolean =>
  event.kind === "error" && REVISION_ERROR_CODES.includes(event.code);

/** Whether a server's text is about the revision. Its name alone decides nothing, since it is also a date. */
const mentionsRevision = (text: string): boolean =>
  text.includes(PROTOCOL_REVISION) && /protocol|revision|version|connection|server-initiated/i.test(text);

/** The answer of a tool that the revision cannot serve, with advice for the caller. */
export function withAdvice(result: Record<string, unknown>, name: string): Record<string, unknown> {
  const text = `From now on ${name} is spoken to in a revision of 2025. The call was made, and is not repeated, because nothing says that this is safe: call the tool again.`;
  return { ...result, content: [...(result.content as object[]), { type: "text", text }] };
}
