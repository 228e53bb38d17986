/** The Tasks extension's own client against the product. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, until } from "../../testing/stack/program.ts";
import { SEATTLE } from "../support/months.ts";
import type { Stack } from "../support/stack.ts";
import { openSession } from "./fixture/session.ts";
import { startTaskStack, tasksAt } from "./support.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startTaskStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("calls a tool that becomes a task, and settles it", async () => {
  await using opened = await openSession(stack.url);
  const execution = await opened.session.callTool("weather_data", { ...SEATTLE, year: 2012, month: 1 });
  expect(execution.kind).toBe("task");
  const { outcome } = await execution.settle();
  expect(outcome).toMatchObject({
    status: "completed",
    result: { structuredContent: { status: "complete", result: { daily: { time: { length: 31 } } } } },
  });
});

test("calls a tool that is not a task, and gets the result", async () => {
  await using opened = await openSession(stack.url);
  const execution = await opened.session.callTool("probe_status", { job_names: ["timer_none"] });
  expect(execution.kind).toBe("immediate");
  const { outcome } = await execution.settle();
  expect(outcome).toMatchObject({ result: { structuredContent: { statuses: [{ status: "not_found" }] } } });
});

test("sees a task fail", async () => {
  await using opened = await openSession(stack.url);
  const { outcome } = await (await opened.session.callTool("protocol_error_job", {})).settle();
  expect(outcome).toMatchObject({ status: "failed", error: { code: -32603, message: "the server itself failed" } });
});

test("cancels a task", async () => {
  await using opened = await openSession(stack.url);
  const execution = await opened.session.callTool("timer", { timer_name: "never", seconds: 3_600 });
  await execution.cancel();
  expect((await execution.settle()).outcome.status).toBe("cancelled");
  await until("the timer's promise to be cancelled", async () => {
    return (await stack.resonate.get(`${stack.namespace}timer_never`))?.state === "rejected_canceled";
  });
});

test("answers a task's question", async () => {
  const asked: unknown[] = [];
  await using opened = await openSession(stack.url, {
    onInputRequest: async (request) => {
      asked.push(request);
      return { action: "accept", content: { confirm: true } } as never;
    },
  });
  const args = { ...SEATTLE, from: "2012-01", to: "2014-01" };
  const { outcome } = await (await opened.session.callTool("weather_range", args)).settle();
  expect(asked).toMatchObject([{ kind: "elicitation", params: { message: expect.stringContaining("25 requests") } }]);
  expect(outcome).toMatchObject({
    status: "completed",
    // The result is larger than one answer.
    result: { structuredContent: { status: "complete", summary: { fields: { months: expect.any(Number) } } } },
  });
});

test("answers a tool's question before the call becomes a task", async () => {
  await using opened = await openSession(stack.url, {
    onInputRequest: async () => ({ action: "accept", content: { name: "Grace" } }) as never,
  });
  const { outcome } = await (await opened.session.callTool("test_tool_with_task", {})).settle();
  expect(outcome).toMatchObject({ status: "completed", result: { structuredContent: { result: "Hello, Grace!" } } });
});

test("resumes a task in another process, by its reference, after edge and worker have been restarted", async () => {
  let reference: unknown;
  {
    await using opened = await openSession(stack.url);
    const execution = await opened.session.callTool("confirm_delete", { filename: "later" });
    if (execution.kind !== "task") expect.fail("not a task");
    await execution.handoff((serialized) => {
      reference = serialized;
    });
    await tasksAt(stack.url).reaches(execution.handle.taskId, "input_required");
  }
  for (const part of [...stack.workers, stack.edge]) {
    await part.end();
    await part.start();
  }
  await using process = run("test/tasks/fixture/resume.ts", { args: [stack.url, JSON.stringify(reference)] });
  expect((await process.exited).exitCode, process.output()).toBe(0);
  expect(process.logs()).toMatchObject([
    { status: "completed", result: { structuredContent: { result: "deleted later" } } },
  ]);
});
