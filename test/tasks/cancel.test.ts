/** Cancelling stops a job that sleeps, retries or waits for an answer for good, and leaves an ended job as it is. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { isRunner } from "../support/account.ts";
import { currentClient, type McpClient } from "../support/clients.ts";
import { type Month, monthsOfItsOwn } from "../support/months.ts";
import type { Stack } from "../support/stack.ts";
import { accept, startTaskStack, tasksAt } from "./support.ts";

let stack: Stack;
let tasks: ReturnType<typeof tasksAt>;
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

const nextMonth = monthsOfItsOwn();

const WAYS = [
  ["tasks/cancel", (taskId: string) => tasks.cancel(taskId)],
  ["cancel_job", (_taskId: string, job: string) => client.callTool("cancel_job", { job_names: [job] })],
] as const;

/** Starts a gathering whose requests all fail until the fault is cleared, and waits for its first request. */
async function retrying(): Promise<{ taskId: string; month: Month }> {
  const month = nextMonth();
  stack.archive.control.inject({ fault: { kind: "status", status: 503 }, month: month.archived });
  const { taskId } = await tasks.call("weather_data", month.args);
  await requested(month, 1);
  return { taskId, month };
}

const requested = (month: Month, times: number) =>
  until(`${month.job} to be requested ${times} times`, () => stack.archive.control.count(month.archived) >= times);

/** The log messages about a job of the process that executes jobs. */
const logged = (of: string) => {
  const executor = (stack.workers[0] ?? stack.edge).process;
  return executor.logs().flatMap(({ job, msg }) => (job === of ? [msg] : []));
};

describe.concurrent.each(WAYS)("by %s", (way, cancel) => {
  test("a sleeping timer does not fire", async ({ expect }) => {
    const { taskId } = await tasks.call("timer", { timer_name: `never by ${way}`, seconds: 6 });
    const said = () => logged(`timer_never by ${way}`);
    await until("the timer to have been started", () => said().includes("job started"));
    await cancel(taskId, `timer_never by ${way}`);
    const later = await tasks.call("timer", { timer_name: `later by ${way}`, seconds: 7 });
    await tasks.reaches(later.taskId, "completed");
    expect((await tasks.get(taskId)).status).toBe("cancelled");
    expect(said()).not.toContain("job done");
  });

  test("a retrying gathering sends no further request", async ({ expect }) => {
    const { taskId, month } = await retrying();
    const other = await retrying();
    await cancel(taskId, month.job);
    await until("the gathering to be left", () => logged(month.job).includes("job left"));
    const made = stack.archive.control.count(month.archived);
    // The other gathering keeps retrying. Before its third request, the cancelled one would have made another.
    await requested(other.month, 3);
    expect(stack.archive.control.count(month.archived)).toBe(made);
    expect((await tasks.get(taskId)).status).toBe("cancelled");
    await tasks.cancel(other.taskId);
  });

  test("a job with an open question no longer asks", async ({ expect }) => {
    const filename = `asking by ${way}`;
    const { taskId } = await tasks.call("confirm_delete", { filename });
    await tasks.reaches(taskId, "input_required");
    await cancel(taskId, `confirm_delete_${filename}`);
    const task = await tasks.get(taskId);
    expect(task.status).toBe("cancelled");
    expect(task).not.toHaveProperty("inputRequests");
  });

  test("an ended job stays as it is, and the cancellation is acknowledged", async ({ expect }) => {
    const month = nextMonth();
    const ended = await Promise.all([tasks.call("weather_data", month.args), tasks.call("protocol_error_job", {})]);
    for (const { taskId } of ended) {
      const before = await tasks.reaches(taskId, ({ status }) => status !== "working");
      await cancel(taskId, month.job);
      expect(await tasks.get(taskId)).toEqual(before);
      await cancel(taskId, month.job);
      expect(await tasks.get(taskId)).toEqual(before);
    }
  });

  test("a cancelled job can be started again as another task", async ({ expect }) => {
    const args = { timer_name: `again by ${way}`, seconds: 6 };
    const first = await tasks.call("timer", args);
    await cancel(first.taskId, `timer_${args.timer_name}`);
    const second = await tasks.call("timer", args);
    expect(second.taskId).not.toBe(first.taskId);
    expect((await tasks.reaches(second.taskId, "completed")).result.structuredContent.status).toBe("complete");
    expect((await tasks.get(first.taskId)).status).toBe("cancelled");
  });
});

test("cancel_job reports which jobs it cancelled, which had ended and which do not exist", async () => {
  const running = await tasks.call("timer", { timer_name: "running", seconds: 60 });
  const ended = await tasks.call("timer", { timer_name: "ended", seconds: 1 });
  await tasks.reaches(ended.taskId, "completed");
  const { content } = await client.callTool("cancel_job", {
    job_names: ["timer_running", "timer_ended", "timer_nobody set", "confirm_delete_x:0"],
  });
  expect(content).toEqual({
    cancelled: ["timer_running"],
    already_finished: ["timer_ended"],
    not_found: ["timer_nobody set", "confirm_delete_x:0"],
  });
  expect((await tasks.get(running.taskId)).status).toBe("cancelled");
});

test("a job that is cancelled while no worker runs stays cancelled when one starts", async ({ skip }) => {
  skip(isRunner, "there is no worker to end: the runner is one process with the edge");
  const gathering = await retrying();
  const timer = await tasks.call("timer", { timer_name: "no worker", seconds: 6 });
  const asking = await tasks.call("confirm_delete", { filename: "no worker" });
  const { inputRequests } = await tasks.reaches(asking.taskId, "input_required");
  const [worker] = stack.workers;
  if (!worker) expect.fail("no worker");
  await worker.end();

  const answer = { [Object.keys(inputRequests)[0] as string]: accept({ confirm: true }) };
  await tasks.update(asking.taskId, answer);
  const made = stack.archive.control.count(gathering.month.archived);
  const cancelled = [gathering, timer, asking];
  for (const { taskId } of cancelled) await tasks.cancel(taskId);

  await worker.start();
  stack.archive.control.clear();
  const later = await tasks.call("timer", { timer_name: "after the worker", seconds: 6 });
  await tasks.reaches(later.taskId, "completed");
  const month = nextMonth();
  const next = await tasks.call("weather_data", month.args);
  await tasks.reaches(next.taskId, "completed");
  for (const { taskId } of cancelled) expect((await tasks.get(taskId)).status).toBe("cancelled");
  expect(stack.archive.control.count(gathering.month.archived)).toBe(made);
});
