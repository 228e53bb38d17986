/** The bounds of a wrapped server (calls at once, time, the size of a message), its progress and its log. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { LOG_LEVEL_META_KEY, type Progress } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import type { WrapOptions } from "../../wrap/index.ts";
import { accept, tasksAt } from "../tasks/support.ts";
import { COUNTING, serve } from "./servers.ts";
import { connect, linesOf, wrappedStack } from "./support.ts";

/** The longest wait on a busy machine, in milliseconds. */
const WAIT_MS = 100_000;

/** A stack in front of the counting server, which the worker starts as a program unless `reached` says otherwise. */
async function counting(
  options: Partial<WrapOptions> = {},
  targetOf = (env: { CALLS: string }): Partial<WrapOptions> | Promise<Partial<WrapOptions>> => ({
    command: process.execPath,
    args: [COUNTING],
    env,
  }),
  env: Record<string, string> = {},
) {
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  const stack = await wrappedStack({ name: "counting", ...(await targetOf({ CALLS: file })), ...options }, { env });
  const tasks = tasksAt(stack.url);
  return {
    stack,
    lines: () => linesOf(file),
    logs: () => stack.workers[0]?.process.logs() ?? [],
    begin: async (name: string, args: object) => (await tasks.call(name, args)).taskId,
    tasks,
    call: async (name: string, args: object) => {
      const { taskId } = await tasks.call(name, args);
      return (await tasks.reaches(taskId, "completed", WAIT_MS)).result;
    },
    [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose](),
  };
}

/** The log messages that clients get with a call: none, and from the requested level on those of the server. */
const EXPECTED_LOGS = ["2026", "2025"].flatMap((era) => [
  [era, []],
  [era, [{ level: "warning", logger: "counting", data: `${era} by the protocol` }]],
]);

async function logsOf(url: string) {
  const logs: [era: string, messages: object[]][] = [];
  for (const era of ["2026", "2025"] as const) {
    const client = await connect(url, era);
    let messages: object[] = [];
    client.setNotificationHandler("notifications/message", ({ params: { _meta: _, ...message } }) => {
      messages.push(message);
    });
    for (const asks of [false, true]) {
      messages = [];
      if (asks && era === "2025") await client.setLoggingLevel("info");
      const _meta = asks && era === "2026" ? { [LOG_LEVEL_META_KEY]: "info" } : undefined;
      const result = await client.callTool({ name: "logs", arguments: { id: era }, ...(_meta && { _meta }) });
      expect(result).toMatchObject({ content: [{ text: "logged" }] });
      logs.push([era, messages]);
    }
    await client.close();
  }
  return logs;
}

test("over HTTP a client gets the server's log messages of its call from the requested level on", async () => {
  await using counter = await serve(COUNTING, [], { CALLS: join(await mkdtemp(join(tmpdir(), "counting-")), "calls") });
  await using stack = await wrappedStack({ name: "counting", url: counter.url, allowPrivate: true });
  expect(await logsOf(stack.url)).toEqual(EXPECTED_LOGS);
});

test("a call that exceeds its timeout is cancelled, and its job says so", async () => {
  await using server = await counting({ timeout: 1_000 });
  const result = await server.call("steps", { id: "a", ms: 3_600_000 });
  expect(result.structuredContent.error).toMatch(/did not answer within 1 s: whether it had its effect is unknown/);
  await until("the server to hear of it", async () => (await server.lines()).includes("cancelled a"), WAIT_MS);
});

test("a timeout that is longer than the longest timer of Node ends no call", async () => {
  await using server = await counting({ timeout: 365 * 86_400_000 });
  expect(await server.call("steps", { id: "a", ms: 1_000 })).toMatchObject({ content: [{ text: "steps a are done" }] });
});

test("progress arrives with the server's own numbers and messages", async () => {
  await using server = await counting();
  const client = await connect(server.stack.url);
  const notifications: Progress[] = [];
  const onprogress = (progress: Progress) => void notifications.push(progress);
  const result = await client.callTool({ name: "steps", arguments: { id: "a", ms: 5_000 } }, { onprogress });
  await client.close();
  expect(result).toMatchObject({ content: [{ text: "steps a are done" }] });
  // Before the server's first progress, the client may be notified that the job runs.
  const ownProgress = notifications.filter(({ message = "" }) => !message.startsWith("counting."));
  expect(ownProgress.length).toBeGreaterThan(1);
  expect(ownProgress).toEqual(
    ownProgress.map(({ progress }) => ({ progress, total: 10, message: `step ${progress}` })),
  );
});

test("calls keep to the server's concurrency; a call that waits for an answer does not count, so another can ask in the meantime", async () => {
  await using server = await counting({ concurrency: 1, after: 500 });
  const asking = await Promise.all(["a", "b"].map((id) => server.begin("asks", { id })));
  const questions = await Promise.all(asking.map((id) => server.tasks.reaches(id, "input_required", WAIT_MS)));
  expect(questions.map(({ inputRequests }) => JSON.stringify(inputRequests).match(/Write (.)/)?.[1])).toEqual([
    "a",
    "b",
  ]);
  expect(await server.call("write", { id: "c" })).toMatchObject({ content: [{ text: "write c is done" }] });
  // An answered call waits for its turn too: calls continue one at a time.
  const write = await server.begin("write", { id: "d", ms: 3_600_000 });
  await until("the call", async () => (await server.lines()).includes("write d"), WAIT_MS);
  const answer = (i: number, sure: boolean) =>
    server.tasks.update(asking[i] ?? "", { [Object.keys(questions[i]?.inputRequests)[0] ?? ""]: accept({ sure }) });
  await answer(1, false);
  await server.tasks.cancel(write);
  await answer(0, true);
  for (const [i, sure] of [true, false].entries()) {
    const { result } = await server.tasks.reaches(asking[i] ?? "", "completed", WAIT_MS);
    expect(result.content[0].text).toContain(`"sure":${sure}`);
  }
  expect((await server.lines()).toSorted()).toEqual(
    ["asks a", "asks b", "write c", "write d", "answered a", "answered b"].toSorted(),
  );
});

test("with a process for each call, a question belongs to its call, and the end of a program ends one call only", async () => {
  await using server = await counting({ processes: 3, after: 100 });
  const asking = await Promise.all(["a", "b"].map((id) => server.begin("asks", { id, ms: 500 })));
  const questions = await Promise.all(asking.map((id) => server.tasks.reaches(id, "input_required", WAIT_MS)));
  const result = await server.call("crash", { id: "c" });
  expect(result.structuredContent.error).toContain("whether it had its effect is unknown");
  expect(await server.call("write", { id: "d" })).toMatchObject({ content: [{ text: "write d is done" }] });
  for (const [i, id] of asking.entries()) {
    const [[key, request] = []] = Object.entries(questions[i]?.inputRequests) as [string, object][];
    expect(JSON.stringify(request)).toContain(`Write ${"ab"[i]}?`);
    await server.tasks.update(id, { [key ?? ""]: accept({ sure: i === 0 }) });
    expect((await server.tasks.reaches(id, "completed", WAIT_MS)).result.content[0].text).toContain(
      `"sure":${i === 0}`,
    );
  }
});

test("a call that waits for its turn when the worker dies has not been sent, and the next worker makes it", async () => {
  await using stack = new AsyncDisposableStack();
  const overHttp = async (env: { CALLS: string }) => {
    const { url } = stack.use(await serve(COUNTING, [], env));
    return { url, allowPrivate: true };
  };
  const server = stack.use(await counting({ concurrency: 1, after: 100 }, overHttp));
  const first = await server.begin("write", { id: "a", ms: 3_600_000 });
  await until("the first call", async () => (await server.lines()).includes("write a"), WAIT_MS);
  const second = await server.begin("write", { id: "b", job_name: "b" });
  await server.stack.workers[0]?.process.waitForLog("counting.write.b", "job started");
  // The job needs some time to get to the point where it waits.
  await delay(500);
  await server.stack.workers[0]?.kill();
  await server.stack.workers[0]?.start();
  const { result: firstResult } = await server.tasks.reaches(first, "completed", WAIT_MS);
  expect(firstResult.structuredContent.error).toContain("whether it had its effect is unknown");
  expect((await server.tasks.reaches(second, "completed", WAIT_MS)).result).toMatchObject({
    content: [{ text: "write b is done" }],
  });
  expect(await server.lines()).toEqual(["write a", "write b"]);
});

test("a job that is left after it got its turn and before its record gives the turn back: all calls are made once", async () => {
  await using server = await counting({ concurrency: 1, after: 100 }, undefined, { LEASE_SECONDS: "6" });
  const first = await server.begin("write", { id: "a", ms: 3_000 });
  await until("the first call", async () => (await server.lines()).includes("write a"), WAIT_MS);
  const second = await server.begin("write", { id: "b", job_name: "b" });
  const worker = server.stack.workers[0]?.process;
  await worker?.waitForLog("counting.write.b", "job started");
  // The second job gets its turn when the first call ends, and cannot record it.
  await server.stack.resonate.kill();
  await worker?.waitForLog("counting.write.b", "job left");
  await server.stack.resonate.start();
  for (const [taskId, text] of [
    [first, "write a is done"],
    [second, "write b is done"],
  ] as const)
    expect((await server.tasks.reaches(taskId, "completed", WAIT_MS)).result).toMatchObject({ content: [{ text }] });
  expect(await server.call("write", { id: "c" })).toMatchObject({ content: [{ text: "write c is done" }] });
  expect(await server.lines()).toEqual(["write a", "write b", "write c"]);
});

test.each(["stdio", "http"])(
  "an answer that is too long is dropped and fails its call, which is not repeated, and other calls continue (%s)",
  async (how) => {
    await using stack = new AsyncDisposableStack();
    const overHttp = async (env: { CALLS: string }) => {
      const { url } = stack.use(await serve(COUNTING, [], env));
      return { url, allowPrivate: true };
    };
    const server = stack.use(await counting({ after: 100 }, how === "http" ? overHttp : undefined));
    const write = await server.begin("write", { id: "a", ms: 4_000 });
    const read = await server.begin("read", { id: "r", ms: 4_000 });
    await until("both", async () => (await server.lines()).length === 2, WAIT_MS);
    const task = await server.tasks.reaches(await server.begin("large", { size: 17_000_000 }), "failed", WAIT_MS);
    expect(task.error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/has done the call, and its answer was dropped: it has more than 16000000 bytes/),
    });
    for (const [taskId, text] of [
      [write, "write a is done"],
      [read, "read r is done"],
    ] as const) {
      const { result } = await server.tasks.reaches(taskId, "completed", WAIT_MS);
      expect(result).toMatchObject({ content: [{ text }] });
    }
    expect((await server.lines()).toSorted()).toEqual(["large 17000000", "read r", "write a"]);
  },
);

test("the server's log messages, by the protocol and on stderr, are in the worker's log", async () => {
  await using server = await counting();
  expect(await server.call("logs", { id: "a" })).toMatchObject({ content: [{ text: "logged" }] });
  const logLines = () => server.logs().filter(({ msg }) => msg === "wrapped server says");
  for (const line of ["a by the protocol", "a beside it"])
    await until(line, () => logLines().some(({ says }) => says === line), WAIT_MS);
  expect(await logsOf(server.stack.url)).toEqual(EXPECTED_LOGS);
  // Output of the server that is not a message has done no harm.
  expect(await server.call("write", { id: "b" })).toMatchObject({ content: [{ text: "write b is done" }] });
  expect(await server.lines()).toEqual(["write b"]);
});
