/** A program outlives its worker, which is killed: the next worker continues its calls and does not send them again. */
import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import type { Connection } from "../../../wrap/worker/connection/connection.ts";
import { WrappedServer } from "../../../wrap/worker/wrapped-server.ts";
import { tasksAt } from "../../tasks/support.ts";
import { COUNTING, EVERYTHING } from "../servers.ts";
import { answerQuestion, isAlive, linesOf, restartWorker, SILENT_LOG, wrappedStack } from "../support.ts";

/** The longest wait on a busy machine, in milliseconds. */
const WAIT_MS = 60_000;

const folder = () => mkdtemp(join(tmpdir(), "program-"));

/** Kills the programs that have written their process ids into a folder. */
async function killAll(folder: string): Promise<void> {
  for (const pid of (await readdir(folder)).map(Number).filter((pid) => pid > 0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The program has already ended.
    }
  }
}

test("the example server's long operation and its research task, which asks, end in the program in which they began", async () => {
  const file = join(await folder(), "sent");
  // The file has all input of the program.
  const command = ["-c", 'tee -a "$SENT" | exec "$0" "$1"', process.execPath, EVERYTHING];
  const options = { name: "everything", command: "sh", args: command, env: { SENT: file } };
  await using stack = await wrappedStack({ ...options, after: 100 });
  const tasks = tasksAt(stack.url);
  const sentTools = async () => {
    const text = await readFile(file, "utf8");
    return [...text.matchAll(/"method":"tools\/call","params":{"name":"([^"]+)"/g)].map(([, name]) => name);
  };
  const research = await tasks.call("simulate-research-query", { topic: "python", ambiguous: true });
  await tasks.reaches(research.taskId, "input_required", WAIT_MS);
  const operation = await tasks.call("trigger-long-running-operation", { duration: 5, steps: 5 });
  await until("the call", async () => (await sentTools()).length === 2);
  await restartWorker(stack);
  await answerQuestion(stack, research.taskId, { interpretation: "snake" });
  const finishedOperation = await tasks.reaches(operation.taskId, "completed", WAIT_MS);
  expect(finishedOperation.result.content[0].text).toContain("Duration: 5 seconds, Steps: 5");
  const finishedResearch = await tasks.reaches(research.taskId, "completed", WAIT_MS);
  expect(finishedResearch.result.content[0].text).toContain("**Clarification**: snake");
  expect(await sentTools()).toEqual(["simulate-research-query", "trigger-long-running-operation"]);
});

test("calls, a task and questions continue, even if they finished without a worker; if the program is killed too, they finish with an error, or are repeated if that is safe", async () => {
  const root = await folder();
  const file = join(root, "calls");
  const program = { command: process.execPath, args: [COUNTING], env: { CALLS: file, PIDS: root } };
  await using stack = await wrappedStack({ name: "counting", ...program, after: 100 });
  const tasks = tasksAt(stack.url);
  const long = await tasks.call("write", { id: "w1", ms: 5_000 });
  const short = await tasks.call("write", { id: "w2", ms: 1_000 });
  const research = await tasks.call("research", { id: "r1" });
  await tasks.reaches(research.taskId, "input_required", WAIT_MS);
  await until("the calls", async () => (await linesOf(file)).filter((line) => line.startsWith("write")).length === 2);
  await stack.workers[0]?.kill();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await stack.workers[0]?.start();
  await answerQuestion(stack, research.taskId, { sure: true });
  for (const [{ taskId }, text] of [
    [long, "write w1 is done"],
    [short, "write w2 is done"],
    [research, '"sure":true'],
  ] as const) {
    const { result } = await tasks.reaches(taskId, "completed", WAIT_MS);
    expect(result.content[0].text).toContain(text);
  }
  // A question without a task, in the same program, is asked once and answered after the worker's death.
  const ask = await tasks.call("asks", { id: "a1" });
  await tasks.reaches(ask.taskId, "input_required", WAIT_MS);
  await restartWorker(stack);
  await answerQuestion(stack, ask.taskId, { sure: true });
  expect((await tasks.reaches(ask.taskId, "completed", WAIT_MS)).result.content[0].text).toContain('"sure":true');
  const lines = (await linesOf(file)).filter((line) => !line.startsWith("looked"));
  expect(lines.toSorted()).toEqual(
    ["answered a1", "answered r1", "asked r1", "asks a1", "research r1", "write w1", "write w2"].toSorted(),
  );
  // The program is killed as well.
  const write = await tasks.call("write", { id: "w3", ms: 3_600_000 });
  const read = await tasks.call("read", { id: "r3", ms: 1_000 });
  const asking = await tasks.call("research", { id: "t3" });
  await tasks.reaches(asking.taskId, "input_required", WAIT_MS);
  await until("the calls", async () => (await linesOf(file, "3")).length >= 4);
  await stack.workers[0]?.kill();
  await killAll(root);
  await stack.workers[0]?.start();
  for (const { taskId } of [write, asking]) {
    const { result } = await tasks.reaches(taskId, "completed", WAIT_MS);
    expect(result.structuredContent.error).toMatch(/program that it was sent to has ended.*effect.* is unknown/i);
  }
  const { result } = await tasks.reaches(read.taskId, "completed", WAIT_MS);
  expect(result.content[0].text).toBe("read r3 is done");
  expect(await linesOf(file, "w3")).toEqual(["write w3"]);
  expect(await linesOf(file, "t3")).toEqual(["research t3", "asked t3"]);
}, 200_000);

test("a program ends with a worker that stops, and some time after a worker that was killed", async () => {
  const root = await folder();
  const env = { CALLS: join(root, "calls"), PIDS: root };
  const program = { command: process.execPath, args: [COUNTING], env };
  await using stack = await wrappedStack({ name: "counting", ...program, keep: 1_000 });
  const running = async () => (await readdir(root)).map(Number).filter((pid) => pid > 0 && isAlive(pid));
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    await stack.call("write", { id: signal });
    expect(await running()).toHaveLength(1);
    await stack.workers[0]?.end(signal);
    await until(`the program to end after ${signal}`, async () => (await running()).length === 0, WAIT_MS);
    await stack.workers[0]?.start();
  }
});

test("two workers do not share a program, but each can continue the other's call, which is made once", async () => {
  const file = join(await folder(), "calls");
  const options = { name: "counting", command: process.execPath, args: [COUNTING], env: { CALLS: file }, keep: 5_000 };
  const workers = [0, 1].map(() => new WrappedServer(options, { ...process.env, RESONATE_URL: file }, true));
  const [first, second] = await Promise.all(workers.map((worker) => worker.connection("", SILENT_LOG)));
  if (!first?.host || !second) throw new Error("no program host");
  expect(second.host).not.toBe(first.host);
  const session = { sessionId: first.host };
  const write = (on: Connection, id: string, request: string) => {
    const params = { name: "write", arguments: { id, ms: 500 } };
    return on.request("tools/call", params, { isRecoverable: true, id: request, session });
  };
  const firstRequests = [write(first, "a", "wrapped-a"), write(first, "b", "wrapped-b")];
  await until("the calls", async () => (await linesOf(file)).length === 2);
  const continuation = write(second, "a", "wrapped-a");
  expect(await continuation.result).toMatchObject({ content: [{ text: "write a is done" }] });
  expect(await firstRequests[1]?.result).toMatchObject({ content: [{ text: "write b is done" }] });
  // The second worker also gets an outcome that the first one has had, until that is recorded. After that the outcome is unknown.
  const again = write(second, "b", "wrapped-b");
  expect(await again.result).toMatchObject({ content: [{ text: "write b is done" }] });
  again.release();
  await until("it to be forgotten", async () => {
    const late = write(second, "b", "wrapped-b").result;
    return late.then(
      () => false,
      (error) => error.name === "OutcomeUnknown",
    );
  });
  expect((await linesOf(file)).toSorted()).toEqual(["write a", "write b"]);
  await Promise.all(workers.map((worker) => worker.close()));
});
