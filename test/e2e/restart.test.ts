import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { client2025, currentClient } from "../support/clients.ts";
import { startGate } from "../support/gate.ts";
import { SEATTLE, servedBody } from "../support/months.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";

vi.setConfig({ maxConcurrency: 10, testTimeout: 60_000 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const MAY = {
  args: { ...SEATTLE, year: 2013, month: 5 },
  job: "weather_data_47.6_-122.3_2013_5",
  archived: "2013-05",
  first: "2013-05-01",
};

/** One client starts jobs, the other collects the results. */
const pairs = [
  { starter: currentClient, collector: client2025 },
  { starter: client2025, collector: currentClient },
];

test.concurrent.each(pairs)(
  "after the edge is killed, $collector.kind collects what $starter.kind started, and a waiting call can be repeated",
  async ({ starter, collector }) => {
    await using stack = await startStack({ resonate });
    stack.archive.control.inject({ fault: { kind: "slow", ms: 300 }, times: 1 });
    await using first = await starter.connect(stack.url);
    const { content: gathering } = await first.callTool("start_gathering", MAY.args);
    const { content: timer } = await first.callTool("set_timer", { timer_name: "tea", seconds: 5 });
    await first.close();
    await using waiting = await starter.connect(stack.url);
    const { content: other } = await waiting.callTool("timer", { timer_name: "egg", seconds: 1 });
    const args = { job_names: [timer.promise_id, other.job_name] };
    const leaving = new AbortController();
    const progress = new Promise<void>((resolve) => {
      const options = { signal: leaving.signal, onprogress: () => resolve() };
      waiting.callTool("await_result", args, options).catch(() => {});
    });
    await progress; // it waits for the other timer now
    await stack.edge.end();
    await expect(fetch(`${stack.origin}/health`)).rejects.toThrow();
    await stack.edge.start();
    leaving.abort();
    const { content: both } = await waiting.callTool("await_result", args);
    expect(both.results).toEqual({ timer_tea: "complete", timer_egg: "complete" });

    await using second = await collector.connect(stack.url);
    const job_names = [gathering.job_name, timer.promise_id];
    const { content } = await second.callTool("await_result", { job_names });
    expect(content).toMatchObject({ results: { timer_tea: "complete" }, errors: {}, running: [] });
    expect(stack.archive.control.requests.total).toBe(1);
    expect(JSON.stringify(content.results[MAY.job])).toBe(await servedBody(stack.archive, MAY));
    expect(stack.archive.control.requests.total).toBe(2); // the second is the test's own
  },
);

// On a busy machine the first lease may lapse before the job begins. `debug` then logs the later one ("job continued").
const SHORT_LEASE = { LEASE_SECONDS: "2", LOG_LEVEL: "debug" };

/** Resolves to the worker that has begun a job. */
const runnerOf = (stack: Stack, job: string) =>
  until(`a worker to begin ${job}`, () =>
    stack.workers.find(({ process }) =>
      process.logsOf(job).some(({ msg }) => msg === "job started" || msg === "job continued"),
    ),
  );

describe.concurrent("the worker is killed, and a second worker is running:", () => {
  const workers = 2;
  const connect = async (stack: Stack) => ({
    client: await client2025.connect(stack.url),
    other: await currentClient.connect(stack.url),
  });

  test("if it was fetching, the archive is asked once more", async () => {
    await using stack = await startStack({ resonate, workers, env: SHORT_LEASE });
    const { client, other } = await connect(stack);
    stack.archive.control.inject({ fault: { kind: "hang" }, times: 1 });
    await client.callTool("start_gathering", MAY.args);
    const worker = await runnerOf(stack, MAY.job);
    await until("the request to be under way", () => stack.archive.control.requests.total === 1);
    await worker.end("SIGKILL");
    const { content } = await other.callTool("await_result", { job_names: MAY.job });
    expect(stack.archive.control.requests.total).toBe(2);
    expect(JSON.stringify(content.results[MAY.job])).toBe(await servedBody(stack.archive, MAY));
  });

  test("if it had fetched, the archive is not asked again", async () => {
    await using gate = await startGate(resonate.url);
    await using stack = await startStack({ resonate, workers, env: { ...SHORT_LEASE, RESONATE_URL: gate.url } });
    const { client, other } = await connect(stack);
    const fetched = gate.hold("task.fulfill");
    await client.callTool("start_gathering", MAY.args);
    await fetched;
    const worker = await runnerOf(stack, MAY.job);
    await worker.end("SIGKILL");
    gate.release("task.fulfill");
    const { content } = await other.callTool("await_result", { job_names: MAY.job });
    expect(stack.archive.control.requests.total).toBe(1);
    expect(JSON.stringify(content.results[MAY.job])).toBe(await servedBody(stack.archive, MAY));
  });

  test("if a timer slept, the timer fires, and not early", async () => {
    await using stack = await startStack({ resonate, workers, env: SHORT_LEASE });
    const { client, other } = await connect(stack);
    const { content: timer } = await client.callTool("set_timer", { timer_name: "tea", seconds: 5 });
    await resonate.asleep(stack.namespace + timer.promise_id);
    const worker = await runnerOf(stack, timer.promise_id);
    await worker.end("SIGKILL");
    expect((await other.callTool("get_timer_status", { timer_name: "tea" })).content).toMatchObject({
      fires_at: timer.fires_at,
    });
    const { content } = await other.callTool("await_result", { job_names: timer.promise_id });
    expect(content.results).toEqual({ timer_tea: "complete" });
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(timer.fires_at));
  });
});

test.concurrent("without a worker, jobs are accepted and reported as running, and complete once a worker starts", async () => {
  await using stack = await startStack({ resonate, workers: 0 });
  await using client = await currentClient.connect(stack.url);
  expect((await client.callTool("start_gathering", MAY.args)).content.status).toBe("running");
  await client.callTool("set_timer", { timer_name: "tea", seconds: 1 });
  const job_names = [MAY.job, "timer_tea"];
  const { content } = await client.callTool("await_result", { job_names, timeout_seconds: 2 });
  expect(content).toEqual({ results: {}, errors: {}, running: job_names });
  expect((await client.callTool("get_timer_status", { timer_name: "tea" })).content).toMatchObject({
    status: "running",
    remaining_seconds: 0,
  });
  await stack.addWorker();
  const { results } = (await client.callTool("await_result", { job_names })).content;
  expect(Object.keys(results).sort()).toEqual(job_names.toSorted());
  expect(stack.archive.control.requests.total).toBe(1);
});
