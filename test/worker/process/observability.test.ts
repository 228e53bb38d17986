import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { attribute, startCollector } from "../../support/collector.ts";
import { startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const JOB = "weather_data_47.6_-122.3_2013_5";
const MONTH = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };

async function scene(env: Record<string, string> = {}) {
  const archive = await startSampleArchive();
  const { group, namespace, env: own } = ownGroup();
  const worker = await startWorker({ ...resonate.env, ...own, WEATHER_API_URL: archive.url, ...env });
  return {
    archive,
    worker,
    gather: (name = JOB, args: object = MONTH) =>
      resonate.start({ id: namespace + name, func: "weather_data", args, group }),
    timer: (name: string, ms: number) => {
      const fires_at = new Date(Date.now() + ms).toISOString();
      return resonate.start({
        id: `${namespace}timer_${name}`,
        func: "timer",
        args: { timer_name: name, fires_at },
        group,
      });
    },
    settled: (name = JOB) => resonate.settled(namespace + name),
    async [Symbol.asyncDispose]() {
      await Promise.all([worker, archive].map((part: WorkerProcess | SampleArchive) => part[Symbol.asyncDispose]()));
    },
  };
}

/** The value of a series, 0 where it does not exist yet; `labels` in the order of the output. */
async function metric(worker: WorkerProcess, name: string, labels = ""): Promise<number> {
  const response = await fetch(new URL("/metrics", worker.healthUrl));
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  const line = (await response.text()).split("\n").find((line) => line.startsWith(`durable_${name}${labels} `));
  return Number(line?.split(" ").at(-1) ?? 0);
}

describe.concurrent("/metrics", () => {
  test("counts jobs by outcome, retries, and the archive's answers by status", async () => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "status", status: 503 }, times: 1, month: "2013-05" });
    the.archive.control.inject({ fault: { kind: "status", status: 400, reason: "no" }, month: "2013-06" });
    // Another Resonate client may start a job under any name.
    const names = ["weather_data_47.6_-122.3_2013_6", "named_by_another_client"];
    await Promise.all([
      the.gather(),
      ...names.map((name, i) => the.gather(name, { ...MONTH, month: 6 + i })),
      the.timer("tea", 500),
    ]);
    await Promise.all([JOB, ...names, "timer_tea"].map(the.settled));
    const of = (name: string, labels?: string) => metric(the.worker, name, labels);
    const running = (kind: string) => of("worker_tasks_running", `{job="${kind}"}`);
    await until(
      "the last job to be counted",
      async () => !(await running("weather_data")) && !(await running("unknown")),
    );

    expect(await of("worker_connected")).toBe(1);
    expect(await of("worker_jobs_settled_total", '{job="weather_data",outcome="complete"}')).toBe(2);
    expect(await of("worker_jobs_settled_total", '{job="weather_data",outcome="failed"}')).toBe(1);
    expect(await of("worker_jobs_settled_total", '{job="timer",outcome="complete"}')).toBe(1);
    expect(await of("worker_job_retries_total", '{job="weather_data"}')).toBe(1);
    const answers = ["2xx", "4xx", "5xx"].map((status) =>
      of("job_upstream_request_seconds_count", `{status="${status}"}`),
    );
    expect(await Promise.all(answers)).toEqual([2, 1, 1]);
    expect(await of("worker_resonate_requests_total", '{kind="task.acquire",status="200"}')).toBeGreaterThanOrEqual(3);
    expect(await of("worker_leases_lost_total", '{job="weather_data"}')).toBe(0);
  });

  test("shows the tasks that run, wait for a slot, or were handed back", async () => {
    await using the = await scene({ MAX_TASKS: "1", DRAIN_SECONDS: "1" });
    the.archive.control.inject({ fault: { kind: "hang" } });
    await the.gather();
    await the.worker.waitForLog(JOB, "job started");
    await the.gather("weather_data_47.6_-122.3_2013_6", { ...MONTH, month: 6 });
    const of = (name: string) => metric(the.worker, name, '{job="weather_data"}');
    await until("the second job to wait", async () => (await of("worker_tasks_waiting")) === 1);
    expect(await of("worker_tasks_running")).toBe(1);
    the.worker.signal("SIGTERM");
    await until("a job to be handed back", async () => (await of("worker_tasks_released_total")) > 0);
  });

  test("counts requests without an answer, and the lease that lapsed because of them", async () => {
    await using gate = await startGate(resonate.url);
    await using the = await scene({ RESONATE_URL: gate.url, LEASE_SECONDS: "1" });
    the.archive.control.inject({ fault: { kind: "slow", ms: 4_000 }, times: 1 });
    void gate.hold("task.heartbeat");
    await the.gather();
    await the.worker.waitForLog(JOB, "job left");
    const of = (name: string, labels?: string) => metric(the.worker, name, labels);
    // On a busy machine the job may first be left once before it begins, when it does not have a lease to lose.
    const lost = () => of("worker_leases_lost_total", '{job="weather_data"}');
    await until("the lease to be lost", async () => (await lost()) > 0);
    await gate.close();
    await until("the lost connection to be seen", async () => (await of("worker_connected")) === 0);
    const unanswered = () => of("worker_resonate_requests_total", '{kind="task.heartbeat",status="none"}');
    await until("the call without an answer to be counted", async () => (await unanswered()) > 0);
  });
});

describe("traces", () => {
  test("hold every execution of a job, before and after a sleep, with its requests; the last spans are sent at exit", async () => {
    await using collector = await startCollector();
    await using the = await scene({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    // So long that the job sleeps before it asks again.
    the.archive.control.inject({ fault: { kind: "status", status: 503, retry_after: "6" }, times: 1 });
    await the.gather();
    await the.settled();
    await the.timer("tea", 500);
    await the.settled("timer_tea");
    the.worker.signal("SIGTERM");
    expect(await the.worker.exited).toMatchObject({ exitCode: 0 });

    const parts = collector.spans.filter(({ name }) => name === "job weather_data");
    expect(parts.map((span) => attribute(span, "outcome"))).toEqual(["asleep", "complete"]);
    expect(new Set(parts.map((span) => attribute(span, "job")))).toEqual(new Set([JOB]));
    const requests = collector.spans.filter(({ name }) => name === "step request");
    expect(requests.map(({ parentSpanId }) => parentSpanId)).toEqual(parts.map(({ spanId }) => spanId));
    expect(new Set([...parts, ...requests].map(({ traceId }) => traceId)).size).toBe(1);
    const timer = collector.spans.filter(({ name }) => name === "job timer");
    expect(timer.length).toBeGreaterThan(0);
    expect(timer.map(({ traceId }) => traceId)).not.toContain(parts[0]?.traceId);
    expect(collector.services).toEqual(new Set(["durable-mcp-edge-worker"]));
  });

  test("to a collector that is not there neither fail a job nor delay the worker's exit", async () => {
    await using the = await scene({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" });
    await the.gather();
    expect(await the.settled()).toMatchObject({ state: "resolved" });
    the.worker.signal("SIGTERM");
    expect(await the.worker.exited).toMatchObject({ exitCode: 0 });
  });
});
