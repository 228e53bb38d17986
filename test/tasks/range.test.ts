/** `weather_range`: a span of months, with and without tasks. */
import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { monthAvailability } from "../../tools/weather/calendar.ts";
import { currentClient, type McpClient } from "../support/clients.ts";
import { wholeResult } from "../support/results.ts";
import { TASKS } from "../support/rpc.ts";
import type { Stack } from "../support/stack.ts";
import { accept, startTaskStack, tasksAt, type WireTask } from "./support.ts";

vi.setConfig({ maxConcurrency: 20 });

let stack: Stack;
let tasks: ReturnType<typeof tasksAt>;
/** A client that does not know tasks. */
let client: McpClient;
beforeAll(async () => {
  stack = await startTaskStack();
  tasks = tasksAt(stack.url);
  client = await currentClient.connect(stack.url);
});
afterAll(async () => {
  await client?.close();
  await stack?.[Symbol.asyncDispose]();
});

let places = 0;
/** Returns a place that no other test uses, so that its months are this test's alone. */
const ownPlace = () => ({ latitude: Number((47.5 + ++places / 1_000).toFixed(3)), longitude: -122.3 });

/** The number of requests for each month at a place, by the month's first day. */
function requests({ latitude }: { latitude: number }): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { query } of stack.archive.control.requests.log) {
    const asked = new URLSearchParams(query);
    const day = asked.get("start_date") ?? "";
    if (asked.get("latitude") === String(latitude)) counts[day] = (counts[day] ?? 0) + 1;
  }
  return counts;
}

const onceEach = (count: number) => Array.from({ length: count }, () => 1);
const result = (task: WireTask) => task.result.structuredContent;

describe.concurrent("a span of up to 24 months", () => {
  test("is gathered without a question; its months are in order, each with the result of its own job", async ({
    expect,
  }) => {
    const place = ownPlace();
    const { taskId, status } = await tasks.call("weather_range", { ...place, from: "2012-11", to: "2014-10" });
    expect(status).toBe("working");
    const task = await tasks.reaches(taskId, (task) => {
      expect(task.status).not.toBe("input_required");
      return task.status === "completed";
    });
    const job_name = `weather_range_${place.latitude}_-122.3_2012-11_2014-10`;
    expect(result(task)).toMatchObject({ job_name, status: "complete" });
    const { months } = await wholeResult(stack.url, job_name);
    expect(months).toHaveLength(24);
    expect(months[2]).toMatchObject({
      year: 2013,
      month: 1,
      job_name: `weather_data_${place.latitude}_-122.3_2013_1`,
      weather: { daily: { time: expect.arrayContaining(["2013-01-01", "2013-01-31"]) } },
    });
    expect(Object.values(requests(place))).toEqual(onceEach(24));
    const { job_name: monthJob, weather } = months[23];
    const { content } = await client.callTool("probe_status", { job_names: [monthJob] });
    expect(content.statuses[0].result).toEqual(weather);
  });

  test("requests each month once, even if other calls gather it before, at the same time or afterwards", async ({
    expect,
  }) => {
    const place = ownPlace();
    const month = (n: number) => ({ ...place, year: 2013, month: n });
    const before = await client.callTool("start_gathering", month(1));
    await client.callTool("await_result", { job_names: [before.content.job_name] });
    const [range, overlapping] = await Promise.all([
      tasks.call("weather_range", { ...place, from: "2013-01", to: "2013-06" }),
      tasks.call("weather_range", { ...place, from: "2013-04", to: "2013-09" }),
      client.callTool("start_gathering", month(5)),
    ]);
    await tasks.reaches(range.taskId, "completed");
    await tasks.reaches(overlapping.taskId, "completed");
    const after = await client.callTool("weather_data", month(9));
    expect(after.content.status).toBe("complete");
    expect(Object.values(requests(place))).toEqual(onceEach(9));
  });

  test("reports failed months beside those that succeed", async ({ expect }) => {
    const { taskId } = await tasks.call("weather_range", { ...ownPlace(), from: "2015-12", to: "2016-01" });
    const task = await tasks.reaches(taskId, "completed");
    expect(task.result.isError).toBeUndefined();
    const { months } = result(task).result;
    expect(months[0]).toMatchObject({ year: 2015, month: 12, weather: { daily: {} } });
    expect(months[0]).not.toHaveProperty("error");
    expect(months[1]).toMatchObject({ year: 2016, month: 1, error: expect.stringContaining("out of allowed range") });
    expect(months[1]).not.toHaveProperty("weather");
  });

  test("fails with a reason when every month fails, and can be started again", async ({ expect }) => {
    const args = { ...ownPlace(), from: "2016-01", to: "2016-02" };
    const { taskId } = await tasks.call("weather_range", args);
    const task = await tasks.reaches(taskId, "completed");
    expect(task.result.isError).toBe(true);
    expect(result(task)).toMatchObject({ status: "failed", error: expect.stringContaining("out of allowed range") });
    expect((await tasks.call("weather_range", args)).taskId).not.toBe(taskId);
  });

  test("with failed months says so, and each further call tries only those again until the range is complete", async ({
    expect,
  }) => {
    const place = ownPlace();
    const args = { ...place, from: "2015-03", to: "2015-06" };
    const name = `weather_range_${place.latitude}_-122.3_2015-03_2015-06`;
    // Two months that no other test asks for. One is refused twice, the other once.
    const refuse = { kind: "status", status: 400, reason: "not today" } as const;
    for (const month of ["2015-04", "2015-05", "2015-05"]) {
      stack.archive.control.inject({ fault: refuse, month, times: 1 });
    }
    const ask = async () => {
      const { taskId } = await tasks.call("weather_range", args);
      const { job_name, status } = result(await tasks.reaches(taskId, "completed"));
      expect(status).toBe("complete");
      const { months, missing } = await wholeResult(stack.url, job_name);
      const failed = months.filter((month: object) => "error" in month);
      for (const { error } of failed) expect(error).toContain("not today");
      expect(months.filter((month: object) => "weather" in month)).toHaveLength(4 - failed.length);
      return { job_name, missing, failed: failed.map(({ month }: { month: number }) => month) };
    };
    expect(await ask()).toEqual({ job_name: name, missing: 2, failed: [4, 5] });
    expect(requests(place)).toEqual({ "2015-03-01": 1, "2015-04-01": 1, "2015-05-01": 1, "2015-06-01": 1 });
    expect(await ask()).toEqual({ job_name: `${name}~2`, missing: 1, failed: [5] });
    expect(await ask()).toEqual({ job_name: `${name}~3`, missing: undefined, failed: [] });
    const all = { "2015-03-01": 1, "2015-04-01": 2, "2015-05-01": 3, "2015-06-01": 1 };
    expect(requests(place)).toEqual(all);
    // After that, further calls find the complete range.
    expect(await ask()).toEqual({ job_name: `${name}~3`, missing: undefined, failed: [] });
    expect(requests(place)).toEqual(all);
  });

  test("with the current month has today's date in its job name, as the job of the month itself has", async ({
    expect,
  }) => {
    const place = ownPlace();
    const now = Date.now();
    const today = new Date(now).toISOString().slice(0, 10);
    // West of Greenwich the month begins later than in UTC.
    const present = new Date(now - 8 * 3_600_000).toISOString().slice(0, 7);
    const [year = 0, month = 0] = present.split("-").map(Number);
    const last = new Date(Date.UTC(year, month - 2, 1)).toISOString().slice(0, 7);
    const { taskId } = await tasks.call("weather_range", { ...place, from: last, to: present });
    // The sample archive has no current data, so the test looks at the names of the jobs.
    const { job_name } = result(await tasks.reaches(taskId, "completed"));
    expect(job_name).toBe(`weather_range_${place.latitude}_-122.3_${last}_${present}@${today}`);
    const name = (of: string, asOf: string) => {
      const [y, m] = of.split("-").map(Number);
      return `${stack.namespace}weather_data_${place.latitude}_-122.3_${y}_${m}${asOf}`;
    };
    expect(await stack.resonate.get(name(present, `@${today}`))).toBeDefined();
    const [lastYear = 0, lastMonth = 0] = last.split("-").map(Number);
    const isPart =
      monthAvailability(lastYear, lastMonth, { longitude: 0, timezone: "UTC" }, Date.parse(today)) === "partial";
    const asOf = isPart ? `@${today}` : "";
    expect(await stack.resonate.get(name(last, asOf))).toBeDefined();
  });
});

describe.concurrent("a span of more than 24 months, to a client with tasks", () => {
  const long = { from: "2012-01", to: "2014-02" };

  test("asks first, with the number of requests, and makes none before the answer", async ({ expect }) => {
    const place = ownPlace();
    const { taskId } = await tasks.call("weather_range", { ...place, ...long });
    const task = await tasks.reaches(taskId, "input_required");
    expect(task.statusMessage).toContain("26 requests");
    const [[key, request] = expect.fail("no question")] = Object.entries<{ params: object }>(task.inputRequests);
    expect(request.params).toMatchObject({
      message: expect.stringContaining("2012-01 to 2014-02"),
      // Accepting is enough: the form has no field.
      requestedSchema: { type: "object", properties: {} },
    });
    expect(requests(place)).toEqual({});
    await tasks.update(taskId, { [key]: accept({}) });
    const { job_name } = result(await tasks.reaches(taskId, "completed"));
    expect((await wholeResult(stack.url, job_name)).months).toHaveLength(26);
    expect(Object.values(requests(place))).toEqual(onceEach(26));
  });

  test.for([
    ["declined", { action: "decline" }],
    ["closed", { action: "cancel" }],
    ["answered with no", accept({ confirm: false })],
  ] as const)("%s: says so, makes no request, and can be started again", async ([_what, answer], { expect }) => {
    const args = { ...ownPlace(), ...long };
    const { taskId } = await tasks.call("weather_range", args);
    const { inputRequests } = await tasks.reaches(taskId, "input_required");
    await tasks.update(taskId, { [Object.keys(inputRequests)[0] as string]: answer });
    const task = await tasks.reaches(taskId, "completed");
    expect(result(task)).toMatchObject({ status: "failed", error: "declined: none of the 26 requests was made" });
    expect(task.result.content[0].text).toContain("declined");

    const again = await tasks.call("weather_range", args);
    expect(again.taskId).not.toBe(taskId);
    expect((await tasks.reaches(again.taskId, "input_required")).inputRequests).toEqual(inputRequests);
    expect(requests(args)).toEqual({});
    await tasks.cancel(again.taskId);
  });

  test("asks even if an argument says that the user agreed, unless the client cannot ask", async ({ expect }) => {
    const doubted = await tasks.call("weather_range", { ...ownPlace(), ...long, confirm: true });
    await tasks.reaches(doubted.taskId, "input_required");
    const { taskId } = await tasksAt(stack.url, undefined, TASKS).call("weather_range", {
      ...ownPlace(),
      ...long,
      confirm: true,
    });
    const task = await tasks.reaches(taskId, (task) => {
      expect(task.status).not.toBe("input_required");
      return task.status === "completed";
    });
    expect((await wholeResult(stack.url, result(task).job_name)).months).toHaveLength(26);
  });
});

describe.concurrent("a span of more than 24 months, to a client without tasks", () => {
  const long = { from: "2012-01", to: "2014-02" };

  test("is refused until an argument confirms it, and then gathered", async ({ expect }) => {
    const place = ownPlace();
    const refused = await client.callTool("weather_range", { ...place, ...long });
    expect(refused).toMatchObject({ isError: true });
    expect(refused.text).toMatch(/^Nothing was done: weather_range_.*26 requests.*confirm: true/);
    const { content } = await client.callTool("probe_status", {
      job_names: [`weather_range_${place.latitude}_-122.3_2012-01_2014-02`],
    });
    expect(content.statuses[0].status).toBe("not_found");

    const confirmed = await client.callTool("weather_range", { ...place, ...long, confirm: "true" });
    expect(confirmed.content.status).toBe("complete");
    expect((await wholeResult(stack.url, confirmed.content.job_name)).months).toHaveLength(26);
    expect(Object.values(requests(place))).toEqual(onceEach(26));
  });

  test("if confirmed, answers the question of the same job that a client with tasks started", async ({ expect }) => {
    const args = { ...ownPlace(), ...long };
    const { taskId } = await tasks.call("weather_range", args);
    await tasks.reaches(taskId, "input_required");
    const confirmed = await client.callTool("weather_range", { ...args, confirm: true });
    expect(confirmed.content.status).toBe("complete");
    expect((await wholeResult(stack.url, confirmed.content.job_name)).months).toHaveLength(26);
    expect(result(await tasks.reaches(taskId, "completed"))).toEqual(confirmed.content);
    expect(Object.values(requests(args))).toEqual(onceEach(26));
  });

  test("if confirmed before that job asks, still answers its question", async ({ expect }) => {
    const args = { ...ownPlace(), ...long };
    const [{ taskId }, confirmed] = await Promise.all([
      tasks.call("weather_range", args),
      client.callTool("weather_range", { ...args, confirm: true }),
    ]);
    expect(confirmed).toMatchObject({ content: { status: "complete" } });
    expect((await wholeResult(stack.url, confirmed.content.job_name)).months).toHaveLength(26);
    expect((await tasks.get(taskId)).status).toBe("completed");
  });
});

describe.concurrent("is refused, with what would be accepted", () => {
  const next = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 7);
  test.for([
    ["2014-02", "2014-01", "to: 2014-01 is before 2014-02"],
    ["1990-01", "2010-01", "241 months. Accepted: up to 240 months"],
    [next, next, `${next} has not begun`],
    ["1939-12", "1940-01", "from 1940-01"],
    ["2014-13", "2014-13", "YYYY-MM"],
    ["2014-1", "2014-2", "YYYY-MM"],
    ["2014-01-01", "2014-02-01", "YYYY-MM"],
  ] as const)("from %s to %s", async ([from, to, reason], { expect }) => {
    const args = { ...ownPlace(), from, to, confirm: true };
    const answers = [await client.callTool("weather_range", args), await tasks.call("weather_range", args)];
    for (const answer of answers) {
      expect(answer).toMatchObject({ isError: true });
      expect(JSON.stringify(answer)).toContain(reason);
    }
    expect(requests(args)).toEqual({});
  });
});
