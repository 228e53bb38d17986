/**
 * `node lab/collector/collector.ts`: sends a job's trace to the OpenTelemetry project's own collector, which the first run builds
 * with Go from its modules. A request with a `traceparent` starts a job. Prints the collector's view: each span of that trace
 * under its parent, with its attributes. Exits with 1 unless the spans form one tree across edge, worker and upstream, and the
 * lines in both logs name the trace.
 */
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { startChild } from "../../cli/process/child.ts";
import { SEATTLE } from "../../test/support/months.ts";
import { rpcHeaders, rpcMessage } from "../../test/support/rpc.ts";
import { startStack } from "../../test/support/stack.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { freePort } from "../../testing/stack/port.ts";
import { until, watch } from "../../testing/stack/program.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";

interface Span {
  service: string;
  trace: string;
  parent: string;
  id: string;
  name: string;
  kind: string;
  attributes: string[];
}

/** The spans in the collector's output. */
function spansIn(text: string): Span[] {
  return text.split("ResourceSpans #").flatMap((resource) => {
    const service = /service\.name: Str\((.*)\)/.exec(resource)?.[1] ?? "";
    return resource
      .split(/^Span #/m)
      .slice(1)
      .map((span) => {
        const field = (name: string) => new RegExp(`^ *${name} *: (.*)$`, "m").exec(span)?.[1] ?? "";
        const [trace, parent, id] = [field("Trace ID"), field("Parent ID"), field("ID")];
        const attributes = [...span.matchAll(/^ *-> (.*)$/gm)].map(([, attribute = ""]) => attribute);
        return { service, trace, parent, id, name: field("Name"), kind: field("Kind"), attributes };
      });
  });
}

function print(spans: readonly Span[], parent: string, depth = 1): void {
  for (const span of spans.filter((each) => each.parent === parent)) {
    const indent = "  ".repeat(depth);
    console.log(`${indent}${span.name} (${span.kind}, ${span.service})`);
    console.log(`${indent}    ${span.attributes.join(`\n${indent}    `)}`);
    print(spans, span.id, depth + 1);
  }
}

const folder = await mkdtemp(join(tmpdir(), "collector-"));
await using cleanup = new AsyncDisposableStack();
cleanup.defer(() => rm(folder, { recursive: true, force: true }));
for (const file of ["main.go", "go.mod"]) await copyFile(join(import.meta.dirname, file), join(folder, file));
for (const args of [
  ["mod", "tidy"],
  ["build", "-o", "collector", "."],
])
  await execa("go", args, { cwd: folder, stderr: "inherit" });

const port = await freePort();
const config = {
  receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
  exporters: { debug: { verbosity: "detailed" } },
  service: { pipelines: { traces: { receivers: ["otlp"], exporters: ["debug"] } } },
};
await writeFile(join(folder, "config.yaml"), JSON.stringify(config));
const options = { env: {}, cwd: folder, grace: 5_000 };
const collector = cleanup.use(watch(startChild(join(folder, "collector"), ["--config", "config.yaml"], options)));
await until("the collector", () => collector.output().includes("Everything is ready"));

const archive = cleanup.use(await startSampleArchive());
const asked: unknown[] = [];
const upstream = await serveHttp(async (request, response) => {
  asked.push(request.headers.traceparent);
  const answer = await fetch(`${archive.url}${new URL(request.url ?? "", archive.url).search}`);
  response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
});
cleanup.use(upstream);
const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${port}`;
const WEATHER_API_URL = upstream.url;
const env = { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_BSP_SCHEDULE_DELAY: "500", WEATHER_API_URL };
const stack = cleanup.use(await startStack({ env, bindings: { OTEL_EXPORTER_OTLP_ENDPOINT } }));

const params = { name: "weather_data", arguments: { ...SEATTLE, year: 2013, month: 1 } };
const message = rpcMessage("tools/call", params, {});
Object.assign(message.params._meta, { traceparent: `00-${TRACE}-${CALLER}-01` });
const init = { method: "POST", headers: rpcHeaders("tools/call", params), body: JSON.stringify(message) };
await (await fetch(stack.url, init)).text();

const spans = await until("the spans of the edge, the worker and what it asks", () => {
  const found = spansIn(collector.output()).filter(({ trace }) => trace === TRACE);
  return ["Server", "Consumer", "Client"].every((kind) => found.some((span) => span.kind === kind)) ? found : undefined;
});
console.log(`Trace ${TRACE}, by OpenTelemetry's collector 0.165.0:`);
print(spans, CALLER);
const problems: string[] = [];
const ids = new Set([CALLER, ...spans.map(({ id }) => id)]);
for (const { name, parent } of spans)
  if (!ids.has(parent)) problems.push(`${name} has a parent that is not in the trace`);
const [client] = spans.filter(({ kind }) => kind === "Client");
if (!asked.includes(`00-${TRACE}-${client?.id}-01`)) problems.push(`the upstream was asked with ${asked}`);
for (const [name, output] of [
  ["edge", stack.edge.process.output()],
  ["worker", stack.workers[0]?.process.output()],
])
  if (!output?.includes(`"trace_id":"${TRACE}"`)) problems.push(`the log of the ${name} does not name the trace`);
console.log(problems.length === 0 ? "One tree; both logs name the trace." : `Wrong: ${problems.join("; ")}.`);
process.exitCode = problems.length === 0 ? 0 : 1;
