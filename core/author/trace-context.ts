/** The part of W3C Trace Context that is used: the header `traceparent`, which MCP has in `_meta` as well. */

/** The tag of a job's promise that holds the span in which it was started. */
export const TRACE_TAG = "durable-mcp:trace";

const TRACEPARENT_PATTERN = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A valid `traceparent`; undefined for anything else. */
export const traceparentIn = (value: unknown): string | undefined =>
  typeof value === "string" && TRACEPARENT_PATTERN.test(value) ? value : undefined;

export const traceIdIn = (traceparent: string): string => traceparent.slice(3, 35);
