/** What can be gone on with is not repeated: tasks of both revisions, streams, questions. The worker is killed in between. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../infra/testing/process.ts";
import { startStack, type TestStack } from "../../infra/testing/stack.ts";
import { accept, tasksAt } from "../tasks/support.ts";
import { COUNTING, EVERYTHING, serve } from "./servers.ts";
import { wrapped } from "./support.ts";

const restarted = async (stack: TestStack) => {
  await stack.workers[0]?.kill();
  await stack.workers[0]?.start();
};

/** Waits for the one question of a task, and answers it. */
async function answered(stack: TestStack, taskId: string, content: object): Promise<void> {
  const tasks = tasksAt(stack.url);
  const { inputRequests } = await tasks.reaches(taskId, "input_required", 40_000);
  await tasks.update(taskId, { [Object.keys(inputRequests)[0] ?? ""]: accept(content) });
}

test("the example server's question is answered through the wrap", async () => {
  await using server = await serve(EVERYTHING, ["streamableHttp"]);
  await using stack = await wrapped({ name: "everything", url: server.url, allowPrivate: true });
  const tasks = tasksAt(stack.url);
  const asked = await tasks.call("trigger-elicitation-request", {});
  await answered(stack, asked.taskId, { name: "Ada" });
  const { result } = await tasks.reaches(asked.taskId, "completed", 30_000);
  expect(JSON.stringify(result.content)).toContain("Ada");
});

const research = (ambiguous: boolean) => ({ topic: "python", ambiguous });

test("the example server's research, a task of 2025, asks and ends", async () => {
  await using server = await serve(EVERYTHING, ["streamableHttp"]);
  await using stack = await wrapped({ name: "everything", url: server.url, allowPrivate: true });
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("simulate-research-query", research(true));
  await answered(stack, taskId, { interpretation: "snake" });
  const { result } = await tasks.reaches(taskId, "completed", 30_000);
  expect(result.content[0].text).toContain("**Clarification**: snake");
});

test("its research is gone on with by the task's id when the worker dies, and not begun again", async () => {
  await using server = await serve(EVERYTHING, ["streamableHttp"]);
  await using stack = await wrapped({ name: "everything", url: server.url, allowPrivate: true });
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("simulate-research-query", research(false));
  await until(
    "the task to be known",
    async () => /task/.test((await tasks.get(taskId)).statusMessage ?? ""),
    10_000,
  ).catch(() => {});
  await restarted(stack);
  const { result } = await tasks.reaches(taskId, "completed", 30_000);
  expect(result.content[0].text).toContain("Research Report: python");
});

test("a stream that can be picked up is, by another worker: the call is sent once, also in the middle of a question", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  await using server = await serve(COUNTING, [], { CALLS: file, STREAMS: "1" });
  await using stack = await wrapped({ name: "counting", url: server.url, allowPrivate: true, after: 100 });
  const tasks = tasksAt(stack.url);
  const write = await tasks.call("write", { id: "w1", ms: 12_000 });
  const ask = await tasks.call("asks", { id: "a1" });
  await tasks.reaches(ask.taskId, "input_required");
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  await restarted(stack);
  await answered(stack, ask.taskId, { sure: true });
  expect((await tasks.reaches(ask.taskId, "completed", 40_000)).result.content[0].text).toContain('"sure":true');
  expect((await tasks.reaches(write.taskId, "completed", 40_000)).result.content[0].text).toBe("write w1 is done");
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  expect(lines.toSorted()).toEqual(["answered a1", "asks a1", "write w1"]);
});

test("a task of 2026 is gone on with by its id, and its questions are asked once", async () => {
  await using inner = await startStack({ edge: "test/conformance/edge.ts", worker: "test/conformance/worker.ts" });
  await using stack = await wrapped({
    name: "inner",
    url: inner.url,
    allowPrivate: true,
    tools: ["slow_compute", "confirm_delete"],
    policies: { "*": { repeatable: false } },
  });
  const tasks = tasksAt(stack.url);
  const slow = await tasks.call("slow_compute", { seconds: 6, label: "mine" });
  const ask = await tasks.call("confirm_delete", { filename: "a.txt" });
  await tasks.reaches(ask.taskId, "input_required");
  await restarted(stack);
  await answered(stack, ask.taskId, { confirm: true });
  const asked = await tasks.reaches(ask.taskId, "completed", 40_000);
  expect(asked.result.isError, JSON.stringify(asked)).not.toBe(true);
  expect((await tasks.reaches(slow.taskId, "completed", 40_000)).result).toMatchObject({
    structuredContent: { status: "complete" },
  });
  const { jobs } = await inner.call("list_jobs");
  expect(jobs).toHaveLength(2);
});
