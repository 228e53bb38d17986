/** The fields of a task for each state of its job. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { currentClient } from "../support/clients.ts";
import type { Gate } from "../support/gate.ts";
import { SEATTLE } from "../support/months.ts";
import { rpc } from "../support/rpc.ts";
import { type GatedStack, startGatedStack } from "../support/stack.ts";
import { accept, CAPABILITIES, TASK_PROGRAMS, tasksAt } from "./support.ts";

let gate: Gate;
let stack: GatedStack;
let tasks: ReturnType<typeof tasksAt>;
beforeAll(async () => {
  stack = await startGatedStack({ programs: TASK_PROGRAMS });
  gate = stack.gate;
  tasks = tasksAt(stack.url);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const instant = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
const month = (n: number) => ({ ...SEATTLE, year: 2013, month: n });
const DAY = 24 * 60 * 60;

describe("a created task", () => {
  test("has the fields of a task and no others", async () => {
    const { _meta, ...created } = await tasks.call("timer", { timer_name: "fields", seconds: 60 });
    expect(created).toEqual({
      resultType: "task",
      taskId: expect.any(String),
      status: "working",
      createdAt: instant,
      lastUpdatedAt: created.createdAt,
      ttlMs: null,
      pollIntervalMs: expect.any(Number),
      statusMessage: expect.stringMatching(/^timer_fields: running, due at \S+$/),
    });
    const { _meta: _, ...got } = await tasks.get(created.taskId);
    expect(got).toMatchObject({ ...created, resultType: "complete", pollIntervalMs: expect.any(Number) });
  });

  test("of a job that has ended says so, and leaves the result to tasks/get", async () => {
    const first = await tasks.call("weather_data", month(1));
    await tasks.reaches(first.taskId, "completed");
    const { _meta, ...again } = await tasks.call("weather_data", month(1));
    expect(again).toEqual({
      resultType: "task",
      taskId: first.taskId,
      status: "completed",
      createdAt: first.createdAt,
      lastUpdatedAt: instant,
      ttlMs: null,
    });
  });

  test("of a tool that asked for input first has no content and no request state", async () => {
    const { result: asked } = await call({});
    expect(asked).toMatchObject({ resultType: "input_required", inputRequests: { user_name: {} } });
    const { result: created } = await call({ inputResponses: { user_name: accept({ name: "Alice" }) } });
    expect(created).toMatchObject({ resultType: "task", taskId: expect.any(String) });
    for (const key of ["content", "requestState", "inputRequests", "result"]) expect(created).not.toHaveProperty(key);
    const task = await tasks.reaches(created.taskId, "completed");
    expect(task.result.structuredContent).toMatchObject({ result: "Hello, Alice!" });

    function call(more: object) {
      const params = { name: "test_tool_with_task", arguments: {}, ...more };
      return rpc(stack.url, "tools/call", params, { capabilities: CAPABILITIES });
    }
  });

  test("is returned only after its promise was created", async () => {
    const held = gate.hold("promise.create");
    let answered = false;
    const leaving = new AbortController();
    const args = { name: "timer", arguments: { timer_name: "held", seconds: 60 } };
    const call = rpc(stack.url, "tools/call", args, { signal: leaving.signal }).then(() => {
      answered = true;
    });
    await held;
    expect(answered).toBe(false);
    leaving.abort();
    await expect(call).rejects.toThrow();
    gate.release("promise.create");
    expect(await stack.resonate.get(`${stack.namespace}timer_held`)).toBeUndefined();
  });

  test("is one task and one execution even if the answer to the creation of its promise is lost", async () => {
    const lost = gate.loseAnswer("promise.create");
    const [task] = await Promise.all([tasks.call("weather_data", month(2)), lost]);
    expect(await tasks.reaches(task.taskId, "completed")).toMatchObject({ createdAt: task.createdAt });
    expect((await tasks.call("weather_data", month(2))).taskId).toBe(task.taskId);
    expect(stack.archive.control.count("2013-02")).toBe(1);
  });
});

describe("the state of a job", () => {
  test("complete: completed, with the tool's answer", async () => {
    const { taskId } = await tasks.call("weather_data", month(3));
    const task = await tasks.reaches(taskId, "completed");
    expect(task).toMatchObject({ ttlMs: null, lastUpdatedAt: instant });
    expect(task.result).toMatchObject({ resultType: "complete" });
    expect(task.result.isError).toBeUndefined();
    expect(task.result.structuredContent).toMatchObject({
      job_name: "weather_data_47.6_-122.3_2013_3",
      status: "complete",
      result: { daily: { time: { length: 31 } } },
    });
    expect(JSON.parse(task.result.content[0].text)).toEqual(task.result.structuredContent);
    expect(task.lastUpdatedAt).toBe(task.result.structuredContent.finished_at);
    expect(task).not.toHaveProperty("error");
    expect(task).not.toHaveProperty("pollIntervalMs");
  });

  test("failed: completed, with the tool's error", async () => {
    const { taskId } = await tasks.call("failing_job", {});
    const task = await tasks.reaches(taskId, "completed");
    expect(task.result).toMatchObject({
      isError: true,
      structuredContent: { status: "failed", error: "it always fails" },
      content: [{ type: "text", text: expect.stringContaining("it always fails") }],
    });
    expect(task).not.toHaveProperty("error");
  });

  test("failed by a fault of the server itself: failed, with a JSON-RPC error", async () => {
    const { taskId } = await tasks.call("protocol_error_job", {});
    const task = await tasks.reaches(taskId, "failed");
    const message = "the server itself failed";
    expect(task).toMatchObject({ error: { code: -32603, message }, statusMessage: message });
    expect(task).not.toHaveProperty("result");
  });

  test("cancelled: cancelled, with neither result nor error", async () => {
    const { taskId } = await tasks.call("timer", { timer_name: "cancelled", seconds: 60 });
    await tasks.cancel(taskId);
    const task = await tasks.get(taskId);
    expect(task).toMatchObject({ status: "cancelled", statusMessage: "Cancelled." });
    for (const key of ["result", "error", "pollIntervalMs"]) expect(task).not.toHaveProperty(key);
    expect(Date.parse(task.lastUpdatedAt)).toBeGreaterThanOrEqual(Date.parse(task.createdAt));
  });

  test("timed out: completed, with a tool error that says so", async () => {
    const [timer_name, fires_at] = ["overdue", new Date(Date.now() + 3_600_000).toISOString()];
    const id = `${stack.namespace}timer_${timer_name}`;
    await stack.resonate.start({ id, func: "timer", args: { timer_name, fires_at }, timeoutAt: Date.now() + 1_500 });
    const { taskId } = await tasks.call("timer", { timer_name, seconds: 60 });
    const task = await tasks.reaches(taskId, "completed");
    expect(task.result).toMatchObject({ isError: true, structuredContent: { status: "timed_out" } });
  });

  test("started again after a failure: another task, while the first keeps its outcome", async () => {
    stack.archive.control.inject({ fault: { kind: "status", status: 400, reason: "No." }, month: "2013-04", times: 1 });
    const first = await tasks.call("weather_data", month(4));
    expect((await tasks.reaches(first.taskId, "completed")).result.isError).toBe(true);
    const second = await tasks.call("weather_data", month(4));
    expect(second.taskId).not.toBe(first.taskId);
    const { result } = await tasks.reaches(second.taskId, "completed");
    expect(result.structuredContent).toMatchObject({
      job_name: "weather_data_47.6_-122.3_2013_4~2",
      status: "complete",
    });
    expect((await tasks.get(first.taskId)).result.isError).toBe(true);
  });
});

describe("progress", () => {
  test("is in the status message and changes the date of the last update", async () => {
    const answer = stack.archive.control.hold(1, "2014-02");
    const created = await tasks.call("weather_range", { ...SEATTLE, from: "2014-01", to: "2014-02" });
    const part = await tasks.reaches(created.taskId, ({ statusMessage }) => statusMessage.endsWith(": 1 of 2 months"));
    expect(part.status).toBe("working");
    expect(Date.parse(part.lastUpdatedAt)).toBeGreaterThan(Date.parse(created.lastUpdatedAt));
    answer();
    const whole = await tasks.reaches(created.taskId, "completed");
    expect(Date.parse(whole.lastUpdatedAt)).toBeGreaterThan(Date.parse(part.lastUpdatedAt));
  });

  test("has a short poll interval near the expected end, and a long one long before it", async () => {
    const soon = await tasks.call("timer", { timer_name: "in 2 s", seconds: 2 });
    expect(soon.pollIntervalMs).toBeGreaterThanOrEqual(500);
    expect(soon.pollIntervalMs).toBeLessThanOrEqual(1_000);
    const week = await tasks.call("timer", { timer_name: "in a week", seconds: 7 * DAY });
    expect(week.pollIntervalMs).toBeGreaterThanOrEqual(10 * 60_000);
    expect(week.pollIntervalMs).toBeLessThanOrEqual(7 * DAY * 1_000);
    const gathering = await tasks.call("weather_data", month(5));
    expect(gathering.pollIntervalMs).toBeLessThanOrEqual(1_000);
  });
});

test("a job is the same for every client, however it was started", async () => {
  await using client = await currentClient.connect(stack.url);
  const started = await client.callTool("start_gathering", month(6));
  const job_names = [started.content.job_name];
  const task = await tasks.call("weather_data", month(6));
  const { result } = (await tasks.reaches(task.taskId, "completed")).result.structuredContent;
  expect((await client.callTool("await_result", { job_names })).content.results[started.content.job_name]).toEqual(
    result,
  );
  expect((await client.callTool("weather_data", month(6))).content).toMatchObject({ status: "complete", result });
  expect(stack.archive.control.count("2013-06")).toBe(1);

  const timer = await tasks.call("timer", { timer_name: "shared", seconds: 3_600 });
  const set = await client.callTool("set_timer", { timer_name: "shared", seconds: 60 });
  expect(set.content).toMatchObject({
    promise_id: "timer_shared",
    status: "running",
    note: expect.stringContaining("already set"),
  });
  expect((await client.callTool("cancel_job", { job_names: ["timer_shared"] })).content.cancelled).toHaveLength(1);
  expect((await tasks.get(timer.taskId)).status).toBe("cancelled");
});

test("while the Resonate server is away, requests fail with an error that says so, and the task exists when it is back", async () => {
  const { taskId } = await tasks.call("timer", { timer_name: "away", seconds: 60 });
  await gate.close();
  for (const [method, params] of [
    ["tasks/get", { taskId }],
    ["tasks/cancel", { taskId }],
    ["tasks/update", { taskId, inputResponses: { q1: accept({}) } }],
    ["subscriptions/listen", { notifications: { taskIds: [taskId] } }],
  ] as const) {
    const { error } = await rpc(stack.url, method, params);
    expect([method, error?.code, error?.message]).toEqual([
      method,
      -32603,
      expect.stringMatching(/unavailable.*later/),
    ]);
  }
  await gate.open();
  expect((await tasks.get(taskId)).status).toBe("working");
});
