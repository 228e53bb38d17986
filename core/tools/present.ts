import type { DurablePromise } from "../jobs/remote-store.ts";
import { viewOf } from "../jobs/status.ts";
import type { CallToolResult } from "./mcp.ts";
import { arrange, hold, limitOf, noteOn } from "./results.ts";

/** Structured output, and the same as JSON text for clients that read only text. */
export function structured(content: object): CallToolResult {
  return { structuredContent: { ...content }, content: [{ type: "text", text: JSON.stringify(content) }] };
}

/** What a tool whose work is one job answers with once the promise has settled, however the client came by it. */
export function presentJob(promise: DurablePromise): CallToolResult {
  const limit = limitOf(promise.job);
  const held = hold(viewOf(promise.name, promise), {}, limit);
  // What is too large for an answer goes the way of every large result.
  if (promise.job.answers && held.result?.value) return held.result.value as CallToolResult;
  const fitted = arrange([held], limit);
  const note = noteOn(fitted);
  const [view] = fitted.views;
  const answer = structured({ ...view, ...(note !== undefined && { note }) });
  const isError = promise.state !== "resolved" || (promise.job.answers && (promise.value as CallToolResult).isError);
  return isError ? { ...answer, isError: true } : answer;
}
