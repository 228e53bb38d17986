/** Tasks of both revisions, streams and questions over HTTP are resumed and not repeated after their worker was killed. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { startStack, type TestStack } from "../../../testing/stack/stack.ts";
import { tasksAt } from "../../tasks/support.ts";
import { COUNTING, EVERYTHING, serve } from "../servers.ts";
import { answerQuestion, linesOf, restartWorker, wrappedStack } from "../support.ts";

const research = (ambiguous: boolean) => ({ topic: "python", ambiguous });

describe("the example server", () => {
  let stack: TestStack;
  const resources = new AsyncDisposableStack();
  beforeAll(async () => {
    const server = resources.use(await serve(EVERYTHING, ["streamableHttp"]));
    stack = resources.use(await wrappedStack({ name: "everything", url: server.url, allowPrivate: true, after: 100 }));
  });
  afterAll(() => resources.disposeAsync());

  test("its question is answered, and its research, a task of the 2025 revision, asks and ends", async () => {
    const tasks = tasksAt(stack.url);
    const question = await tasks.call("trigger-elicitation-request", {});
    await answerQuestion(stack, question.taskId, { name: "Ada" });
    expect(JSON.stringify((await tasks.reaches(question.taskId, "completed", 30_000)).result.content)).toContain("Ada");
    const { taskId } = await tasks.call("simulate-research-query", research(true));
    await answerQuestion(stack, taskId, { interpretation: "snake" });
    const { result } = await tasks.reaches(taskId, "completed", 30_000);
    expect(result.content[0].text).toContain("**Clarification**: snake");
  });

  test("after the worker's death, research is resumed by its task id and gets a later answer, and a resumed stream that stays silent is resumed again", async () => {
    const tasks = tasksAt(stack.url);
    const operation = await tasks.call("trigger-long-running-operation", { duration: 15, steps: 2 });
    const asking = await tasks.call("simulate-research-query", research(true));
    await tasks.reaches(asking.taskId, "input_required", 40_000);
    await tasks.reaches(operation.taskId, ({ statusMessage }) => /call 1 runs/.test(statusMessage), 40_000);
    const other = await tasks.call("simulate-research-query", research(false));
    await tasks.reaches(
      other.taskId,
      ({ statusMessage }) => !/(^(send|call)|:) run/.test(statusMessage ?? "call runs"),
    );
    await restartWorker(stack);
    await answerQuestion(stack, asking.taskId, { interpretation: "snake" });
    const { result: answer } = await tasks.reaches(asking.taskId, "completed", 60_000);
    expect(answer.content[0].text).toContain("**Clarification**: snake");
    const { result: report } = await tasks.reaches(other.taskId, "completed", 30_000);
    expect(report.content[0].text).toContain("Research Report: python");
    const { result: finishedOperation } = await tasks.reaches(operation.taskId, "completed", 60_000);
    expect(finishedOperation.content[0].text).toContain("Duration: 15 seconds, Steps: 2");
  }, 200_000);
});

test("another worker resumes a resumable stream, even during a question, and the call is sent once", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  await using server = await serve(COUNTING, [], { CALLS: file, STREAMS: "1" });
  await using stack = await wrappedStack({ name: "counting", url: server.url, allowPrivate: true, after: 100 });
  const tasks = tasksAt(stack.url);
  const ask = await tasks.call("asks", { id: "a1" });
  await tasks.reaches(ask.taskId, "input_required", 40_000);
  const write = await tasks.call("write", { id: "w1", ms: 8_000 });
  // By then the worker has recorded how to resume the stream.
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  await restartWorker(stack);
  await answerQuestion(stack, ask.taskId, { sure: true });
  expect((await tasks.reaches(ask.taskId, "completed", 40_000)).result.content[0].text).toContain('"sure":true');
  expect((await tasks.reaches(write.taskId, "completed", 40_000)).result.content[0].text).toBe("write w1 is done");
  expect((await linesOf(file)).toSorted()).toEqual(["answered a1", "asks a1", "write w1"]);
});

test("a task of the 2026 revision is resumed by its id, its questions are asked once, and it is cancelled with its job while it asks", async () => {
  await using inner = await startStack({
    edge: "test/conformance/conformance-edge.ts",
    worker: "test/conformance/conformance-worker.ts",
  });
  await using stack = await wrappedStack({
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
  await restartWorker(stack);
  await answerQuestion(stack, ask.taskId, { confirm: true });
  const finishedAsk = await tasks.reaches(ask.taskId, "completed", 40_000);
  expect(finishedAsk.result.isError, JSON.stringify(finishedAsk)).not.toBe(true);
  expect((await tasks.reaches(slow.taskId, "completed", 40_000)).result).toMatchObject({
    structuredContent: { status: "complete" },
  });
  const openTask = await tasks.call("confirm_delete", { filename: "b.txt" });
  await tasks.reaches(openTask.taskId, "input_required");
  const jobs = async () => (await inner.call("list_jobs")).jobs as { status: string }[];
  expect(await jobs()).toHaveLength(3);
  await tasks.cancel(openTask.taskId);
  await until("the inner task's end", async () => (await jobs()).some(({ status }) => status === "cancelled"), 40_000);
});
