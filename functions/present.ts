import type { CallToolResult } from "./protocol.ts";
import type { DurablePromise } from "./resonate/store.ts";
import { viewOf } from "./status.ts";

/** Structured output, and the same as JSON text for clients that read only text. */
export function structured(content: object): CallToolResult {
  return { structuredContent: { ...content }, content: [{ type: "text", text: JSON.stringify(content) }] };
}

/** What a tool whose work is one job answers with once the promise has settled, however the client came by it. */
export function presentJob(promise: DurablePromise): CallToolResult {
  const view = viewOf(promise.name, promise);
  return view.status === "complete" ? structured(view) : { ...structured(view), isError: true };
}
