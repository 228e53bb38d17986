/** Sends the spans of requests to an OpenTelemetry collector: OTLP over HTTP, as JSON. */
import { traceIdIn } from "../../core/author/index.ts";
import { pause } from "../../core/resonate/index.ts";

/** The span of an MCP request. `began` is in milliseconds since the epoch. */
export interface RequestSpan {
  /** The `traceparent` of the span itself, and of its parent. */
  traceparent: string;
  parent: string | undefined;
  began: number;
  method: string | undefined;
  tool: string | undefined;
  job: string | undefined;
  caller: string | undefined;
  request_id: string;
  status: number;
}

interface TraceEnv {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  /** `name=value,name=value`, with values as in URLs. */
  OTEL_EXPORTER_OTLP_HEADERS?: string;
  OTEL_SERVICE_NAME?: string;
}

/** How long spans are gathered and how long sending them may take, in milliseconds, and how many wait at most. */
const GATHER_MS = 1_000;
const REQUEST_TIMEOUT_MS = 5_000;
const MAX_WAITING_SPANS = 500;

/** The numbers in OTLP of the span kind SERVER and of the status ERROR. */
const [SERVER, ERROR] = [2, 2];

/** The spans of this isolate that wait to be sent. */
let gatheredSpans: object[] = [];

/** Sends a span with others of about the same time. Spans that cannot be sent are lost. */
export async function exportSpan(span: RequestSpan, env: TraceEnv): Promise<void> {
  if (gatheredSpans.length < MAX_WAITING_SPANS) gatheredSpans.push(otlp(span, Date.now()));
  // No request may wait for the promise of another one, so the first that wakes up sends all spans.
  await pause(GATHER_MS);
  const spans = gatheredSpans;
  if (spans.length === 0) return;
  gatheredSpans = [];
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint = "", OTEL_EXPORTER_OTLP_HEADERS: more = "" } = env;
  const headers = headersIn(more);
  const resource = { attributes: attributesOf({ "service.name": env.OTEL_SERVICE_NAME ?? "durable-mcp-edge" }) };
  const scopeSpans = [{ scope: { name: "durable-mcp-edge" }, spans }];
  const response = await fetch(`${endpoint.replace(/\/$/, "")}/v1/traces`, {
    method: "POST",
    headers,
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] }),
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
  }).catch(() => undefined);
  await response?.body?.cancel();
}

/** The headers of a request to the collector. One that cannot be sent is left out, so that the spans are not lost. */
function headersIn(more: string): Headers {
  const headers = new Headers({ "content-type": "application/json" });
  for (const [, name = "", value = ""] of more.matchAll(/([^,=]+)=([^,]*)/g)) {
    try {
      headers.set(name.trim(), decodeValue(value.trim()));
    } catch {}
  }
  return headers;
}

/** A value without its URL encoding. Text that is not encoded correctly is taken as it is, such as a password with `%`. */
function decodeValue(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** The span in OTLP, with the names of the semantic conventions for MCP. */
function otlp({ traceparent, parent, began, method = "request", tool, status, ...more }: RequestSpan, ended: number) {
  return {
    traceId: traceIdIn(traceparent),
    spanId: spanIn(traceparent),
    ...(parent !== undefined && { parentSpanId: spanIn(parent) }),
    name: tool === undefined ? method : `${method} ${tool}`,
    kind: SERVER,
    startTimeUnixNano: `${began}000000`,
    endTimeUnixNano: `${ended}000000`,
    attributes: attributesOf({
      "mcp.method.name": method,
      "gen_ai.operation.name": tool && "execute_tool",
      "gen_ai.tool.name": tool,
      "network.transport": "tcp",
      "http.response.status_code": status,
      "error.type": status >= 400 ? String(status) : undefined,
      ...more,
    }),
    status: status >= 500 ? { code: ERROR } : {},
  };
}

const spanIn = (traceparent: string): string => traceparent.slice(36, 52);

const attributesOf = (values: Record<string, string | number | undefined>) =>
  Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [{ key, value: typeof value === "number" ? { intValue: value } : { stringValue: value } }];
  });
