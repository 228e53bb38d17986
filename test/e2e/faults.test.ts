import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import type { Fault } from "../../tools/weather/sample-archive/faults.ts";
import { isRunner } from "../support/account.ts";
import { currentClient, type McpClient } from "../support/clients.ts";
import { monthsOfItsOwn, servedBody } from "../support/months.ts";
import { type Stack, startStack } from "../support/stack.ts";

vi.setConfig({ maxConcurrency: 40 });

let stack: Stack;
let client: McpClient;
beforeAll(async () => {
  stack = await startStack({ env: { UPSTREAM_TIMEOUT_SECONDS: "3", UPSTREAM_CONCURRENCY: "40" } });
  client = await currentClient.connect(stack.url);
});
afterAll(async () => {
  await client?.close();
  await stack?.[Symbol.asyncDispose]();
});

const nextMonth = monthsOfItsOwn();
const status = (status: number, more = {}): Fault => ({ kind: "status", status, ...more });

describe.concurrent("a fault of the archive", () => {
  const probe = async (job: string) => (await client.callTool("probe_status", { job_names: job })).content.statuses[0];

  test.each<[string, Fault, number]>([
    ["is slow", { kind: "slow", ms: 400 }, 1],
    ["hangs", { kind: "hang", after: "nothing" }, 2],
    ["refuses the connection", { kind: "refuse" }, 2],
    ["answers 429 with Retry-After", status(429, { retry_after: "1" }), 2],
    ["answers 500", status(500), 2],
    ["answers rubbish", { kind: "rubbish", body: "html" }, 2],
  ])("that passes: it %s once, and the job completes", async (_what, fault, requests) => {
    const month = nextMonth();
    stack.archive.control.inject({ fault, month: month.archived, times: 1 });
    expect((await client.callTool("start_gathering", month.args)).content.status).toBe("running");
    const { content } = await client.callTool("await_result", { job_names: month.job });
    expect(content).toMatchObject({ errors: {}, running: [] });
    expect(stack.archive.control.count(month.archived)).toBe(requests);
    expect(JSON.stringify(content.results[month.job])).toBe(await servedBody(stack.archive, month));
  });

  test.each<[string, Fault, string | RegExp]>([
    ["answers 400 with a reason", status(400, { reason: "No such place" }), "Open-Meteo answered 400: No such place"],
    [
      "asks to wait longer than the job may",
      status(429, { retry_after: "7200", reason: "Daily limit exceeded" }),
      "gave up after 1 attempt: Open-Meteo answered 429: Daily limit exceeded",
    ],
  ])("that stays: it %s, and the job fails at once, with the reason", async (_what, fault, reason) => {
    const month = nextMonth();
    stack.archive.control.inject({ fault, month: month.archived, times: 1 });
    await client.callTool("start_gathering", month.args);
    const { content } = await client.callTool("await_result", { job_names: month.job });
    expect(content).toEqual({ results: {}, errors: { [month.job]: `failed: ${reason}` }, running: [] });
    expect(await probe(month.job)).toMatchObject({ status: "failed", error: reason });
    expect(stack.archive.control.count(month.archived)).toBe(1);
  });

  const refusal: [string, Fault, string] = [
    "refuses the connection",
    { kind: "refuse" },
    "Open-Meteo could not be reached",
  ];

  // A gathering has an hour. These promises are as the edge makes them, but with a shorter deadline.
  test.each<[string, Fault, string]>([
    // The error continues with the last attempt's time limit, which depends on the time left until the deadline.
    ["hangs", { kind: "hang", after: "nothing" }, "Open-Meteo did not answer within "],
    // In the runner, workerd may make several connections for one attempt, so the requests cannot be counted.
    ...(isRunner ? [] : [refusal]),
    ["answers 429", status(429), "Open-Meteo answered 429"],
    ["answers 500", status(500), "Open-Meteo answered 500"],
    ["answers rubbish", { kind: "rubbish", body: "html" }, "Open-Meteo's answer is not JSON"],
  ])("that stays until the deadline: it %s, and the job fails with the last reason", async (_what, fault, reason) => {
    const month = nextMonth();
    stack.archive.control.inject({ fault, month: month.archived });
    const timeoutAt = Date.now() + 12_000;
    const { group, namespace } = stack;
    const id = namespace + month.job;
    await stack.resonate.start({ id, func: "weather_data", args: month.args, group, timeoutAt });
    expect((await client.callTool("start_gathering", month.args)).content).toMatchObject({ job_name: month.job });
    const { content } = await client.callTool("await_result", { job_names: [month.job] });
    const requests = stack.archive.control.count(month.archived);
    expect(requests).toBeGreaterThan(1);
    const error = content.errors[month.job];
    expect(error).toMatch(`failed: gave up after ${requests} attempts: ${reason}`);
    expect(await probe(month.job)).toMatchObject({ status: "failed", error: error.slice("failed: ".length) });
  });

  test("that stays: a job that is cancelled between two attempts makes no further request", async () => {
    const [cancelled, other] = [nextMonth(), nextMonth()];
    for (const { archived } of [cancelled, other]) {
      stack.archive.control.inject({ fault: status(503), month: archived });
    }
    const count = (month: typeof other) => stack.archive.control.count(month.archived);
    await client.callTool("start_gathering", cancelled.args);
    // It sleeps before its next attempt.
    await stack.resonate.asleep(stack.namespace + cancelled.job);
    const { content } = await client.callTool("cancel_job", { job_names: [cancelled.job] });
    expect(content).toEqual({ cancelled: [cancelled.job], already_finished: [], not_found: [] });
    const asked = count(cancelled);
    expect(await probe(cancelled.job)).toMatchObject({ status: "cancelled", error: expect.stringContaining("again") });
    await client.callTool("start_gathering", other.args);
    await until("the other job's third request, later than the cancelled one's next", () => count(other) >= 3);
    expect(count(cancelled)).toBe(asked);
    await client.callTool("cancel_job", { job_names: [other.job] });
  });
});
