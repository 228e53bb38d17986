import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { JOB_FORMAT_HEADER, JOB_FORMAT_VERSION } from "../../core/jobs/form.ts";
import { NO_OPERATORS_HEADER } from "../../core/jobs/reports.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { until } from "../../testing/stack/program.ts";
import { EdgeReports } from "./edge-reports.ts";

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A worker's reports to an edge that answers with these headers, and the requests that the edge received. */
async function reporting(headers: Record<string, string>) {
  const bodies: { started?: object; worker?: { counts: unknown[]; failed: unknown[] } }[] = [];
  const server = await serveHttp(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    bodies.push(JSON.parse(text));
    response.writeHead(204, { [JOB_FORMAT_HEADER]: `${JOB_FORMAT_VERSION}`, ...headers }).end();
  });
  const reports = new EdgeReports({
    url: server.url,
    key: "k".repeat(32),
    client: {} as never,
    namespace: "",
    log: { debug() {} } as never,
    state: () => ({
      worker: "w",
      group: "workers",
      connected: true,
      form: JOB_FORMAT_VERSION,
      kinds: {},
      running: 0,
      most: 1,
    }),
  });
  ended.push(
    () => reports.close(),
    () => server[Symbol.asyncDispose](),
  );
  await reports.start();
  await until("the first report", () => bodies.length === 1);
  return { reports, bodies };
}

test("an edge with operators gets reports of what happens in the worker", async () => {
  const { reports, bodies } = await reporting({});
  reports.stats.count("tea", "started");
  await until("the report", () => bodies[1]?.worker?.counts.length === 1);
});

test("an edge without operators gets no more of them, but still reports of callers' jobs", async () => {
  const { reports, bodies } = await reporting({ [NO_OPERATORS_HEADER]: "worker" });
  reports.stats.count("tea", "started");
  await delay(2_000); // Twice the pause between two reports.
  expect(bodies).toHaveLength(1);
  const { key } = await callerOf("ada");
  reports.started(`${key}tea_1`);
  await until("the report of the job", () => bodies[1]?.started);
  expect(bodies[1]?.started).toEqual({ [key]: [`${key}tea_1`] });
});

test("a worker that ends reports all jobs that failed", async () => {
  const { reports, bodies } = await reporting({});
  for (let i = 0; i < 1_000; i++)
    reports.stats.ended({ job: `tea_${i}`, kind: "tea", outcome: "failed", ms: 1, reason: "no water" });
  await reports.close();
  expect(bodies.flatMap(({ worker }) => worker?.failed ?? [])).toHaveLength(1_000);
});
