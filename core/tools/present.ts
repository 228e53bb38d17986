import type { DurablePromise } from "../jobs/remote-store.ts";
import { viewOf } from "../jobs/status.ts";
import type { CallToolResult } from "./mcp.ts";
import { arrange, hold, limitOf, noteOn } from "./results.ts";

/** Structured output, repeated as JSON text for clients that read only text. */
export function structured(content: object): CallToolResult {
  return { structuredContent: { ...content }, content: [{ type: "text", text: JSON.stringify(content) }] };
}

/** The answer of a tool whose work is one job, once its promise has settled. */
export function presentJob(promise: DurablePromise): CallToolResult {
  const limit = limitOf(promise.job);
  const held = hold(viewOf(promise.name, promise), {}, limit);
  // An answer that is too large is summarized as every large result is.
  if (promise.job.answers && held.result?.value) return held.result.value as CallToolResult;
  const fitted = arrange([held], limit);
  const note = noteOn(fitted);
  const [view] = fitted.views;
  const answer = structured({ ...view, ...(note !== undefined && { note }) });
  const isError = promise.state !== "resolved" || (promise.job.answers && (promise.value as CallToolResult).isError);
  return isError ? { ...answer, isError: true } : answer;
}
