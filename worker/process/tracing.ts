/** Traces for an OpenTelemetry collector. */
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Context, ROOT_CONTEXT, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";

const NAME = "durable-mcp-edge-worker";

/** The longest that the last export may take when the worker stops, in milliseconds. */
const LAST_EXPORT = 2_000;

/**
 * Sends spans to the collector that the standard `OTEL_EXPORTER_OTLP_*` variables name. The returned function sends the
 * remaining spans; it never rejects.
 */
export function startTracing(): () => Promise<void> {
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": NAME }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  trace.setGlobalTracerProvider(provider);
  isOn = true;
  return () => Promise.race([provider.shutdown().catch(() => {}), delay(LAST_EXPORT)]);
}

let isOn = false;

/** Whether spans are exported; making them costs time. */
export const isTracing = (): boolean => isOn;

type Attributes = Record<string, string | number>;

/** The surrounding span. */
const current = new AsyncLocalStorage<Context>();

/**
 * Runs `work` inside a span, a child of `parent` or of the surrounding span. An error of `work` marks the span as failed.
 * `describe` adds attributes from the result.
 */
export async function inSpan<Result>(
  name: string,
  { attributes, parent = current.getStore() ?? ROOT_CONTEXT }: { attributes: Attributes; parent?: Context | undefined },
  work: () => Promise<Result>,
  describe?: (result: Result) => Attributes,
): Promise<Result> {
  const span = trace.getTracer(NAME).startSpan(name, { attributes }, parent);
  try {
    const result = await current.run(trace.setSpan(parent, span), work);
    if (describe) span.setAttributes(describe(result));
    return result;
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    span.end();
  }
}

/** The trace of a promise, derived from its id, so that all executions of a job belong to one trace. */
export function traceOf(promiseId: string): Context {
  const hash = createHash("sha256").update(promiseId).digest("hex");
  const parent = {
    traceId: hash.slice(0, 32),
    spanId: hash.slice(32, 48),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  };
  return trace.setSpanContext(ROOT_CONTEXT, parent);
}
