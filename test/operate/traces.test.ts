/** One trace for each job, from the caller's span through edge and worker to the job's requests, with conventional names. */
import { expect, test, vi } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { until } from "../../testing/stack/program.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { attribute, type Span, startCollector } from "../support/collector.ts";
import { SEATTLE } from "../support/months.ts";
import { rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type StackOptions, startStack } from "../support/stack.ts";

vi.setConfig({ testTimeout: 120_000 });

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE}-${CALLER}-01`;

/** Starts a stack whose upstream notes the trace of each request. */
async function startTraced(options: StackOptions = {}) {
  await using started = new AsyncDisposableStack();
  const archive = started.use(await startSampleArchive());
  const asked: unknown[] = [];
  const upstream = await serveHttp(async (request, response) => {
    asked.push(request.headers.traceparent);
    const answer = await fetch(new URL(request.url ?? "", archive.url));
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  const WEATHER_API_URL = started.use(upstream).url;
  const stack = started.use(await startStack({ ...options, env: { ...options.env, WEATHER_API_URL } }));
  const all = started.move();
  /** Gathers a month by a request with these headers and this `_meta`. */
  const gather = async (month: number, headers: object, meta: object) => {
    const params = { name: "weather_data", arguments: { ...SEATTLE, year: 2013, month } };
    const message = rpcMessage("tools/call", params, {});
    Object.assign(message.params._meta, meta);
    const init = { method: "POST", headers: { ...rpcHeaders("tools/call", params), ...headers } };
    const response = await fetch(stack.url, { ...init, body: JSON.stringify(message) });
    expect(await response.text()).toContain('"complete"');
    return `weather_data_${SEATTLE.latitude}_${SEATTLE.longitude}_2013_${month}`;
  };
  return { stack, asked, gather, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

test("the spans of caller, edge, job, step and request form one chain, which the upstream and both logs learn of", async () => {
  await using collector = await startCollector();
  const OTEL_EXPORTER_OTLP_ENDPOINT = collector.url;
  await using the = await startTraced({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_BSP_SCHEDULE_DELAY: "500" },
    bindings: { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME: "my-edge" },
  });
  const job = await the.gather(1, {}, { traceparent: TRACEPARENT });
  const byName = (name: string) => collector.spans.find((span) => span.name === name && span.traceId === TRACE);
  const spans = await until("the spans", () => {
    const found = ["tools/call weather_data", "job weather_data", "step request", "GET"].map(byName);
    return found.every((span) => span !== undefined) ? (found as Span[]) : undefined;
  });
  const [edge, execution, step, request] = spans as [Span, Span, Span, Span];
  expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([CALLER, edge.spanId, execution.spanId, step.spanId]);
  expect(the.asked).toEqual([`00-${TRACE}-${request.spanId}-01`]);
  expect(spans.map(({ kind }) => kind)).toEqual([2, 5, 1, 3]); // server, consumer, internal, client
  expect(attribute(edge, "mcp.method.name")).toBe("tools/call");
  expect(attribute(edge, "gen_ai.tool.name")).toBe("weather_data");
  expect([attribute(edge, "job"), attribute(execution, "job")]).toEqual([job, job]);
  expect(attribute(execution, "messaging.operation.type")).toBe("process");
  expect(attribute(execution, "messaging.destination.name")).toBe(the.stack.group);
  expect(attribute(request, "url.full")).not.toContain("?");
  expect(collector.services).toEqual(new Set(["my-edge", "durable-mcp-edge-worker"]));
  for (const { process } of [the.stack.edge, ...the.stack.workers])
    expect(
      process
        .output()
        .split("\n")
        .filter((line) => line.includes(job))
        .join(),
    ).toContain(`"trace_id":"${TRACE}"`);

  // Without a trace of the caller, or with a malformed one, the edge begins a trace. A header works as well as `_meta`.
  await the.gather(2, {}, { traceparent: "00-00000000000000000000000000000000-b7ad6b7169203331-01" });
  await the.gather(3, { traceparent: TRACEPARENT.replace("0af7", "0af8") }, {});
  const traces = await until("the jobs' spans", () => {
    const jobs = collector.spans.filter(({ name }) => name === "job weather_data");
    return jobs.length >= 3 ? jobs.map(({ traceId }) => traceId) : undefined;
  });
  expect(new Set(traces).size).toBe(3);
  expect(traces).toContain(TRACE.replace("0af7", "0af8"));
  const edges = collector.spans.filter(({ name }) => name === "tools/call weather_data").map(({ traceId }) => traceId);
  expect(new Set(edges)).toEqual(new Set(traces));
});

test("without an exporter, both logs have the caller's trace, and requests have none", async () => {
  await using the = await startTraced();
  const job = await the.gather(1, { traceparent: TRACEPARENT }, {});
  for (const { process } of [the.stack.edge, ...the.stack.workers])
    expect(
      process
        .output()
        .split("\n")
        .filter((line) => line.includes(job))
        .join(),
    ).toContain(`"trace_id":"${TRACE}"`);
  expect(the.asked).toEqual([undefined]);
});
