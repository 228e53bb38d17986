import { viewOf } from "../jobs/status.ts";
import type { DurablePromise } from "../resonate/remote-store.ts";
import type { CallToolResult } from "./protocol.ts";
import { arrange, hold, limitOf, noteOn } from "./results.ts";

/** Structured output, and the same as JSON text for clients that read only text. */
export function structured(content: object): CallToolResult {
  return { structuredContent: { ...content }, content: [{ type: "text", text: JSON.stringify(content) }] };
}

/** What a tool whose work is one job answers with once the promise has settled, however the client came by it. */
export function presentJob(promise: DurablePromise): CallToolResult {
  const limit = limitOf(promise.job);
  if (promise.job.answers && promise.state === "resolved") {
    // What is too large for an answer goes the way of every large result.
    if (JSON.stringify(promise.value).length <= limit) return promise.value as CallToolResult;
  }
  const fitted = arrange([hold(viewOf(promise.name, promise), {}, limit)], limit);
  const note = noteOn(fitted);
  const [view] = fitted.views;
  const answer = structured({ ...view, ...(note !== undefined && { note }) });
  return promise.state === "resolved" ? answer : { ...answer, isError: true };
}
