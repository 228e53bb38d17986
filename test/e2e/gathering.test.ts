import { Codec } from "@resonatehq/sdk";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { client2025, currentClient, type McpClient } from "../support/clients.ts";
import { type Month, monthsOfItsOwn, servedBody } from "../support/months.ts";
import { rpcHeaders } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";

vi.setConfig({ maxConcurrency: 20 });

let stack: Stack;
let clients: [McpClient, McpClient];
beforeAll(async () => {
  stack = await startStack();
  clients = await Promise.all([currentClient.connect(stack.url), client2025.connect(stack.url)]);
});
afterAll(async () => {
  await Promise.all(clients?.map((client) => client.close()) ?? []);
  await stack?.[Symbol.asyncDispose]();
});

const nextMonth = monthsOfItsOwn();
const refused = { kind: "status", status: 400, reason: "No such luck" } as const;
const asked = (month: Month) => stack.archive.control.count(month.archived);

/** Makes the same call with both clients at once, `times` times each, with each of `spellings` in turn. */
async function callByBoth(name: string, spellings: object[], times: number) {
  const calls = Array.from({ length: times }, (_, i) => spellings[i % spellings.length] as object);
  const results = await Promise.all(clients.flatMap((client) => calls.map((args) => client.callTool(name, args))));
  expect(results.filter(({ isError }) => isError)).toEqual([]);
  return results.map(({ content }) => content);
}

async function awaitOne(client: McpClient, job: string) {
  const { content } = await client.callTool("await_result", { job_names: [job] });
  return { result: content.results[job], error: content.errors[job] };
}

describe.concurrent("50 starts of one job at once, and more later", () => {
  test("give one job and one request, however the numbers are spelled", async () => {
    const month = nextMonth();
    const { year, month: m } = month.args;
    const spellings = [
      { latitude: 47.6, longitude: -122.3, year, month: m },
      { latitude: "47.60", longitude: "-122.30", year: `${year}`, month: `0${m}` },
      { latitude: " 47.6 ", longitude: "-1.223e2", year: `${year}.0`, month: `${m}` },
      { latitude: "+47.600", longitude: -122.3, year, month: m, timezone: "auto" },
      { latitude: 47.6, longitude: "-122.3", year: ` ${year}`, month: m, timezone: null },
    ];
    const first = await callByBoth("start_gathering", spellings, 25);
    expect(new Set(first.map(({ job_name }) => job_name))).toEqual(new Set([month.job]));
    const [one, other] = await Promise.all(clients.map((client) => awaitOne(client, month.job)));
    const again = await callByBoth("start_gathering", spellings, 25);
    expect(again).toEqual(again.map(() => ({ job_name: month.job, status: "complete" })));
    expect(asked(month)).toBe(1);
    expect(JSON.stringify(one?.result)).toBe(await servedBody(stack.archive, month));
    expect(one).toEqual(other);
  });

  test("give one job with a negative zero among the numbers, too", async () => {
    const month = nextMonth();
    const place = { ...month.args, latitude: "-0", longitude: "-0.0" };
    // The job will fail. Its answer is held until all calls have started it: a later start begins the next generation.
    const answer = stack.archive.control.hold(1, month.archived);
    const results = await callByBoth("start_gathering", [place, { ...month.args, latitude: 0, longitude: 0 }], 25);
    answer();
    const job = month.job.replace("47.6_-122.3", "0_0");
    expect(new Set(results.map(({ job_name }) => job_name))).toEqual(new Set([job]));
    expect((await awaitOne(clients[0], job)).error).toBe(
      "failed: Open-Meteo answered 400: No data is available for this location",
    );
    expect(asked(month)).toBe(1);
    const [first] = stack.archive.control.requests.log.filter(({ query }) => query.includes(month.first));
    expect(first?.query).toContain("latitude=0&longitude=0&");
  });
});

describe.concurrent("a job that failed", () => {
  test("is started again as the next generation, with a note; a completed one is not started again", async () => {
    const [client] = clients;
    const month = nextMonth();
    stack.archive.control.inject({ fault: refused, month: month.archived, times: 2 });
    const start = async () => (await client.callTool("start_gathering", month.args)).content;
    const error = "failed: Open-Meteo answered 400: No such luck";

    expect(await start()).toEqual({
      job_name: month.job,
      status: "running",
      collect_with: ["await_result", "probe_status"],
    });
    expect(await awaitOne(client, month.job)).toEqual({ error });
    const second = await start();
    expect(second).toEqual({
      job_name: `${month.job}~2`,
      status: "running",
      note: attempt(2, month),
      collect_with: ["await_result", "probe_status"],
    });
    expect(await awaitOne(client, second.job_name)).toEqual({ error });

    const starts = await callByBoth("start_gathering", [month.args], 10);
    expect(new Set(starts.map(({ job_name }) => job_name))).toEqual(new Set([`${month.job}~3`]));
    expect(starts[0].note).toEqual(attempt(3, month));
    const { result } = await awaitOne(client, `${month.job}~3`);
    expect(asked(month)).toBe(3);
    expect(JSON.stringify(result)).toBe(await servedBody(stack.archive, month));

    expect(await start()).toEqual({ job_name: `${month.job}~3`, status: "complete", note: attempt(3, month) });
    expect((await client.callTool("weather_data", month.args)).content).toMatchObject({
      job_name: `${month.job}~3`,
      result,
    });
    const { statuses } = (await client.callTool("probe_status", { job_names: [month.job, `${month.job}~2`] })).content;
    expect(statuses.map(({ status }: { status: string }) => status)).toEqual(["failed", "failed"]);
    expect(asked(month)).toBe(4); // the fourth is the test's own
  });

  test.each([1, 2, 3, 7, 8, 20])("%i times is started as the right generation", async (failures) => {
    const [client] = clients;
    const month = nextMonth();
    for (let n = 1; n <= failures; n++) await end(n === 1 ? month.job : `${month.job}~${n}`, n);
    const { content } = await client.callTool("start_gathering", month.args);
    const job_name = `${month.job}~${failures + 1}`;
    expect(content).toEqual({
      job_name,
      status: "running",
      note: attempt(failures + 1, month),
      collect_with: ["await_result", "probe_status"],
    });
    expect((await awaitOne(client, job_name)).result.daily.time[0]).toBe(month.first);
    expect((await client.callTool("start_gathering", month.args)).content).toMatchObject({
      job_name,
      status: "complete",
    });
    expect(asked(month)).toBe(1);
  });

  /** Makes a generation of a weather job that failed, timed out or was cancelled, depending on `n`. */
  async function end(job: string, n: number) {
    const id = stack.namespace + job;
    const timeoutAt = n % 3 === 0 ? 1 : undefined;
    await stack.resonate.start({
      id,
      func: "weather_data",
      args: {},
      group: "nobody",
      ...(timeoutAt && { timeoutAt }),
    });
    const state = n % 3 === 1 ? "rejected" : "rejected_canceled";
    await stack.resonate.call("promise.settle", { id, state, value: new Codec().encode(new Error("an old story")) });
  }
});

const attempt = (n: number, { job }: Month) =>
  `Attempt ${n}: an earlier attempt under ${job} finished without a result.`;

test("the status says how a job ended without a result: with a reason, at its deadline, or without a reason", async () => {
  const [client] = clients;
  const [failed, timedOut, odd] = ["2001_1", "2001_2", "2001_3"].map((rest) => `weather_data_1_1_${rest}`) as [
    string,
    string,
    string,
  ];
  const start = (job: string, timeoutAt = Date.now() + 60_000) =>
    stack.resonate.start({ id: stack.namespace + job, func: "weather_data", args: {}, group: "nobody", timeoutAt });
  const reject = (job: string, reason: unknown) =>
    stack.resonate.call("promise.settle", {
      id: stack.namespace + job,
      state: "rejected",
      value: new Codec().encode(reason),
    });
  await Promise.all([start(failed), start(timedOut, 1), start(odd)]);
  await Promise.all([reject(failed, new Error("the reason")), reject(odd, undefined)]);
  const { statuses } = (await client.callTool("probe_status", { job_names: [failed, timedOut, odd] })).content;
  expect(statuses).toMatchObject([
    { status: "failed", error: "the reason" },
    { status: "timed_out", error: expect.stringContaining("deadline") },
    { status: "failed", error: "no reason given" },
  ]);
});

test("the edge's log line of a request and the worker's lines of the job it started share a request id", async () => {
  const params = { name: "set_timer", arguments: { timer_name: "logged", seconds: 1 } };
  const response = await fetch(stack.url, {
    method: "POST",
    headers: { ...rpcHeaders("tools/call", params), "mcp-protocol-version": "2025-11-25" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  expect(response.status).toBe(200);
  const request_id = response.headers.get("x-request-id");
  expect(request_id).toMatch(/\S{8,}/);

  const said = (lines: { [field: string]: unknown }[]) => lines.filter((line) => line.request_id === request_id);
  const edge = await until("the edge's line", () => said(stack.edge.process.logs())[0]);
  expect(edge).toMatchObject({ msg: "request", method: "tools/call", tool: "set_timer", status: 200 });
  // Without worker processes, the runner logs to the edge's output.
  const worker = (stack.workers[0] ?? stack.edge).process;
  const done = await until("the worker's last line", () => said(worker.logs()).find((line) => line.msg === "job done"));
  expect(done).toMatchObject({ outcome: "complete", job: edge.job });
  expect(edge.job).toMatch(/timer_logged$/);
});
