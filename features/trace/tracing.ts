/** Exports traces to an OpenTelemetry collector. */
import { subscribe } from "node:diagnostics_channel";
import { setTimeout as delay } from "node:timers/promises";
import { context, propagation, type Span, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { fail, surroundingSpan, TRACER_NAME } from "./spans.ts";

/** The longest that the last export may take when the worker stops. */
const LAST_EXPORT_TIMEOUT_MS = 2_000;

/**
 * Sends spans to the collector that the standard `OTEL_EXPORTER_OTLP_*` variables name. Requests to the addresses `ownOrigins` are not
 * traced. The returned function sends the remaining spans; it never rejects.
 */
export function startTracing(ownOrigins: readonly (string | undefined)[]): () => Promise<void> {
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": TRACER_NAME }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  traceFetch(new Set(ownOrigins.flatMap((url) => (url ? [new URL(url).origin] : []))));
  return () => Promise.race([provider.shutdown().catch(() => {}), delay(LAST_EXPORT_TIMEOUT_MS)]);
}

interface SentRequest {
  request: { origin: string; method: string; path: string; addHeader(name: string, value: string): void };
}

/** Makes a span for each `fetch` inside a span, and sends the trace along. Node reports fetches on these channels. */
function traceFetch(ownOrigins: ReadonlySet<string>): void {
  const spans = new WeakMap<object, Span>();
  subscribe("undici:request:create", (message) => {
    const { request } = message as SentRequest;
    if (surroundingSpan() === undefined || ownOrigins.has(request.origin)) return;
    const { hostname, port, origin, pathname } = new URL(request.path, request.origin);
    const attributes = {
      "http.request.method": request.method,
      "server.address": hostname,
      ...(port !== "" && { "server.port": Number(port) }),
      // A query may hold secrets.
      "url.full": origin + pathname,
    };
    const span = trace.getTracer(TRACER_NAME).startSpan(request.method, { kind: SpanKind.CLIENT, attributes });
    spans.set(request, span);
    const set = (_request: unknown, name: string, value: string) => request.addHeader(name, value);
    propagation.inject(trace.setSpan(context.active(), span), undefined, { set });
  });
  subscribe("undici:request:headers", (message) => {
    const { request, response } = message as SentRequest & { response: { statusCode: number } };
    const { statusCode } = response;
    const failed = statusCode >= 400 && { "error.type": String(statusCode) };
    spans.get(request)?.setAttributes({ "http.response.status_code": statusCode, ...failed });
  });
  subscribe("undici:request:trailers", (message) => spans.get((message as SentRequest).request)?.end());
  subscribe("undici:request:error", (message) => {
    const { request, error } = message as SentRequest & { error: unknown };
    const span = spans.get(request);
    if (!span) return;
    fail(span, error);
    span.end();
  });
}
