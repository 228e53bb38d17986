/** Spans of a worker's work, by the interface of OpenTelemetry. */
import { createHash } from "node:crypto";
import { context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { TRACE_TAG, traceIdIn, traceparentIn } from "../../core/author/index.ts";
import type { PromiseRecord } from "../../core/resonate/index.ts";

export const TRACER_NAME = "durable-mcp-edge-worker";

type Attributes = Record<string, string | number>;

interface SpanOptions {
  attributes: Attributes;
  kind?: "consumer";
  /** The parent span, as a `traceparent`. Default: the current span. */
  parent?: string | undefined;
}

/**
 * Runs `work` inside a span. An error of `work` marks the span as failed. `describe` adds attributes from the result.
 */
export async function inSpan<Result>(
  name: string,
  { attributes, kind, parent }: SpanOptions,
  work: () => Promise<Result>,
  describe?: (result: Result) => Attributes,
): Promise<Result> {
  const surrounding = parent === undefined ? context.active() : contextOf(parent);
  const options = { attributes, kind: kind ? SpanKind.CONSUMER : SpanKind.INTERNAL };
  const span = trace.getTracer(TRACER_NAME).startSpan(name, options, surrounding);
  try {
    const result = await context.with(trace.setSpan(surrounding, span), work);
    if (describe) span.setAttributes(describe(result));
    return result;
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

export function fail(span: Span, error: unknown): void {
  span.setAttribute("error.type", error instanceof Error ? error.name : "_OTHER");
  span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
}

/** The current span, as a `traceparent`. */
export function surroundingSpan(): string | undefined {
  const { traceId, spanId, traceFlags } = trace.getSpanContext(context.active()) ?? {};
  return traceparentIn(`00-${traceId}-${spanId}-0${traceFlags}`);
}

/** The parent span of a job's executions: a caller's, or else one that is derived from the job's id, so that all share a trace. */
export function spanOf({ id, tags }: PromiseRecord): string {
  const parent = traceparentIn(tags[TRACE_TAG]);
  if (parent !== undefined) return parent;
  const hash = createHash("sha256")
    .update(tags["resonate:origin"] ?? id)
    .digest("hex");
  return `00-${hash.slice(0, 32)}-${hash.slice(32, 48)}-0${TraceFlags.SAMPLED}`;
}

function contextOf(traceparent: string) {
  const spanId = traceparent.slice(36, 52);
  const traceFlags = Number.parseInt(traceparent.slice(53), 16);
  return trace.setSpanContext(ROOT_CONTEXT, { traceId: traceIdIn(traceparent), spanId, traceFlags, isRemote: true });
}
