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

const linesOf = async (file: string, id = "") =>
  (await readFile(file, "utf8").catch(() => ""))
    .trim()
    .split("\n")
    .filter((line) => line.endsWith(id));

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

test("its research asks, the worker dies before the answer, and the answer reaches it all the same", async () => {
  await using server = await serve(EVERYTHING, ["streamableHttp"]);
  await using stack = await wrapped({ name: "everything", url: server.url, allowPrivate: true });
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("simulate-research-query", research(true));
  await tasks.reaches(taskId, "input_required");
  await restarted(stack);
  await answered(stack, taskId, { interpretation: "snake" });
  const { result } = await tasks.reaches(taskId, "completed", 60_000);
  expect(result.content[0].text).toContain("**Clarification**: snake");
});

test("a stream that its server, once it is picked up, tells nothing more is picked up again", async () => {
  await using server = await serve(EVERYTHING, ["streamableHttp"]);
  await using stack = await wrapped({ name: "everything", url: server.url, allowPrivate: true, after: 100 });
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("trigger-long-running-operation", { duration: 20, steps: 2 });
  await tasks.reaches(taskId, ({ statusMessage }) => /call 1 runs/.test(statusMessage));
  await restarted(stack);
  const { result } = await tasks.reaches(taskId, "completed", 120_000);
  expect(result.content[0].text).toContain("Duration: 20 seconds, Steps: 2");
});

test("a program's task is gone with the worker: the job says so at once, and the call is not repeated", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  const env = { CALLS: file };
  await using stack = await wrapped({ name: "counting", command: process.execPath, args: [COUNTING], env });
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("research", { id: "r1" });
  await tasks.reaches(taskId, "input_required");
  await restarted(stack);
  const { result } = await tasks.reaches(taskId, "completed", 60_000);
  expect(result.structuredContent.error).toMatch(/knows no task .* Whether the call had its effect is unknown/);
  expect(await linesOf(file, "r1")).toEqual(["research r1", "asked r1"]);
});

test("a question that dies with the worker before it is written down ends the job in words, and the task", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  await using server = await serve(COUNTING, [], { CALLS: file });
  await using stack = await wrapped({ name: "counting", url: server.url, allowPrivate: true, after: 100 });
  const tasks = tasksAt(stack.url);
  const { taskId } = await tasks.call("research", { id: "r1", ms: 6_000 });
  // The task is written down before the server asks, and its question cannot be.
  await until("the task to be looked at", async () => (await linesOf(file)).some((line) => line.startsWith("looked")));
  await stack.resonate.kill();
  await until("the question", async () => (await linesOf(file)).includes("asked r1"));
  await stack.workers[0]?.kill();
  await stack.resonate.start();
  await stack.workers[0]?.start();
  const { result } = await tasks.reaches(taskId, "completed", 120_000);
  expect(result.structuredContent.error).toMatch(
    /question that got lost .* Whether the call had its effect is unknown/,
  );
  expect(await linesOf(file, "r1")).toEqual(["research r1", "asked r1"]);
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
  expect((await linesOf(file)).toSorted()).toEqual(["answered a1", "asks a1", "write w1"]);
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
