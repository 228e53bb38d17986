/** How often calls reach a wrapped server while parts of the system are killed. The server counts. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import type { TestStack } from "../../../testing/stack/stack.ts";
import { accept, tasksAt } from "../../tasks/support.ts";
import { COUNTING, type HttpServer, serve } from "../servers.ts";
import { connect, linesOf, type Structured, structuredOf, wrappedStack } from "../support.ts";

let folder: string;
let file: string;
let stack: TestStack;
/** The lines that the server wrote for a call. */
const callsOf = (id: string) => linesOf(file, ` ${id}`);

const untilCalled = (id: string, times = 1) =>
  until(
    `${times} calls ${id}`,
    async () => (await callsOf(id)).filter((line) => !/^(answered|cancelled)/.test(line)).length >= times,
  );

async function call(tool: string, args: object): Promise<Structured> {
  const client = await connect(stack.url);
  try {
    return structuredOf(await client.callTool({ name: tool, arguments: { ...args } }));
  } finally {
    await client.close();
  }
}

const finishedJob = async (name: string) => {
  const { statuses } = await until(
    "the job to end",
    async () => {
      const answer = await stack.call("probe_status", { job_names: [name] });
      return answer.statuses[0].status === "running" ? undefined : answer;
    },
    60_000,
  );
  return statuses[0];
};

describe("over http", () => {
  let server: HttpServer;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "counting-"));
    file = join(folder, "calls");
    server = await serve(COUNTING, [], { CALLS: file });
    stack = await wrappedStack({ name: "counting", url: server.url, allowPrivate: true, after: 300 });
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  test("when the worker dies, a write is not repeated and its job says that it was sent, a read is sent again, and a question that depends on the connection ends with an error", async () => {
    const tasks = tasksAt(stack.url);
    const ask = await tasks.call("asks", { id: "q2" });
    await tasks.reaches(ask.taskId, "input_required");
    const write = await call("write", { id: "w1", ms: 3_000, job_name: "w1" });
    const read = await call("read", { id: "r1", ms: 3_000 });
    await Promise.all([untilCalled("w1"), untilCalled("r1")]);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    const job = await finishedJob(write.job_name);
    expect(job).toMatchObject({
      status: "failed",
      error: expect.stringContaining("whether it had its effect is unknown"),
    });
    expect(job.error).toMatch(/sent to counting at 20\d\d-/);
    // A repeated call with the same job name does not send it again either.
    const again = await call("write", { id: "w1", ms: 3_000, job_name: "w1" });
    expect(again).toMatchObject({ isError: true, status: "failed" });
    expect(await callsOf("w1")).toHaveLength(1);
    expect(await finishedJob(read.job_name)).toMatchObject({
      status: "complete",
      result: { content: [{ type: "text", text: "read r1 is done" }] },
    });
    expect(await callsOf("r1")).toHaveLength(2);
    const { result } = await tasks.reaches(ask.taskId, "completed", 30_000);
    expect(result).toMatchObject({ isError: true });
    expect(result.structuredContent.error).toContain("is unknown");
    expect(await callsOf("q2")).toEqual(["asks q2"]);
  });

  test("a call survives the death of the edge and the Resonate server, and is sent once", async () => {
    const { job_name } = await call("write", { id: "w2", ms: 2_500 });
    await untilCalled("w2");
    await Promise.all([stack.edge.kill(), stack.resonate.kill()]);
    await Promise.all([stack.edge.start(), stack.resonate.start()]);
    expect(await finishedJob(job_name)).toMatchObject({ status: "complete" });
    expect(await callsOf("w2")).toHaveLength(1);
  });

  test("a call under way while the Resonate server is away for longer than the lease is found again and not repeated", async () => {
    const { job_name } = await call("write", { id: "w3", ms: 6_000 });
    await untilCalled("w3");
    await stack.resonate.kill();
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    await stack.resonate.start();
    expect(await finishedJob(job_name)).toMatchObject({ status: "complete" });
    expect(await callsOf("w3")).toHaveLength(1);
  });

  test("when the wrapped server dies during calls, a write is not repeated, and a read is repeated once the server is back", async () => {
    const write = await call("write", { id: "w4", ms: 2_000 });
    const read = await call("read", { id: "r4", ms: 2_000 });
    await Promise.all([untilCalled("w4"), untilCalled("r4")]);
    await server.kill();
    await server.start();
    expect(await finishedJob(write.job_name)).toMatchObject({ status: "failed" });
    expect(await finishedJob(read.job_name)).toMatchObject({ status: "complete" });
    expect(await callsOf("w4")).toHaveLength(1);
    // The restarted server serves later calls.
    const after = await call("write", { id: "w5" });
    expect(after.content).toEqual([{ type: "text", text: "write w5 is done" }]);
  });

  test("a call to a server that is away waits for it and is sent once", async () => {
    await server.kill();
    const { job_name } = await call("write", { id: "w6" });
    await server.start();
    expect(await finishedJob(job_name)).toMatchObject({ status: "complete" });
    expect(await callsOf("w6")).toHaveLength(1);
  });

  test("a repeated call with the same job name or idempotency key is the same job", async () => {
    const first = await call("write", { id: "n1", job_name: "mine" });
    const second = await call("write", { id: "n1", job_name: "mine" });
    expect(second.content).toEqual(first.content);
    expect(await callsOf("n1")).toHaveLength(1);
    const other = await call("write", { id: "n2", job_name: "mine" });
    expect(other).toMatchObject({ isError: true, text: expect.stringContaining("other arguments") });
    const client = await connect(stack.url, "2025");
    const params = { name: "write", arguments: { id: "k1" }, _meta: { idempotencyKey: "a key" } };
    for (let i = 0; i < 2; i++) await client.callTool(params);
    await client.close();
    expect(await callsOf("k1")).toHaveLength(1);
    await call("write", { id: "n1" });
    expect(await callsOf("n1")).toHaveLength(2);
  });

  test("a failing tool's own error is returned, and another call reaches the tool again", async () => {
    for (let i = 0; i < 2; i++) {
      expect(await call("fails", { id: "f1", job_name: "f" })).toMatchObject({ isError: true, text: "no f1 today" });
    }
    expect(await callsOf("f1")).toHaveLength(2);
  });

  test("the tool's progress becomes the job's, and cancelling the job cancels the call", async () => {
    const { job_name } = await call("steps", { id: "p1", ms: 30_000 });
    await until(
      "progress",
      async () => {
        const { statuses } = await stack.call("probe_status", { job_names: [job_name] });
        return /step \d/.test(statuses[0].doing ?? "");
      },
      30_000,
    );
    await stack.call("cancel_job", { job_names: [job_name] });
    await until("the server to hear of it", async () => (await callsOf("p1")).includes("cancelled p1"));
  });

  test("cancelling a task cancels its call", async () => {
    const tasks = tasksAt(stack.url);
    const { taskId } = await tasks.call("steps", { id: "p2", ms: 30_000 });
    await untilCalled("p2");
    await tasks.cancel(taskId);
    await until("the server to hear of it", async () => (await callsOf("p2")).includes("cancelled p2"), 15_000);
    await tasks.reaches(taskId, "cancelled");
  });

  test("a client cancels a call at the server by a notification or by disconnecting, but a call with a job name continues", async () => {
    const cancel = async (era: "2025" | "2026", args: { id: string; job_name?: string }) => {
      const client = await connect(stack.url, era);
      const abort = new AbortController();
      const options = { signal: abort.signal, onprogress: () => {}, timeout: 60_000 };
      const calling = client.callTool({ name: "steps", arguments: { ms: 6_000, ...args } }, options);
      const failure = calling.then(
        () => false,
        () => true,
      );
      await untilCalled(args.id);
      abort.abort();
      expect(await failure).toBe(true);
      return client;
    };
    const clients = [await cancel("2025", { id: "c1" }), await cancel("2026", { id: "c2" })];
    for (const id of ["c1", "c2"])
      await until(`the server to hear of ${id}`, async () => (await callsOf(id)).includes(`cancelled ${id}`), 15_000);
    clients.push(await cancel("2025", { id: "c3", job_name: "c3" }));
    expect(await finishedJob("counting.steps.c3")).toMatchObject({ status: "complete" });
    expect(await callsOf("c3")).toEqual(["steps c3"]);
    await Promise.all(clients.map((client) => client.close()));
  });

  test("sampling and roots are refused with a message, and a large answer is summarized with its size", async () => {
    const refusal = await call("samples", { id: "s1", job_name: "s1" });
    const messages = refusal.status === "running" ? await finishedJob("counting.samples.s1") : refusal;
    expect(JSON.stringify(messages)).toMatch(/offers no sampling\/createMessage: .*offers no roots\/list: /);
    const large = await call("large", { size: 2_000_000, job_name: "large" });
    const name = large.job_name ?? "counting.large.large";
    const { summaries } = await stack.call("await_result", { job_names: [name] });
    expect(summaries[name]).toMatchObject({ characters: 2_000_039, next_offset: 2_000 });
  });

  test("a question becomes a durable one, and its answer reaches the call that asked", async () => {
    const tasks = tasksAt(stack.url);
    const { taskId } = await tasks.call("asks", { id: "q1" });
    const { inputRequests } = await tasks.reaches(taskId, "input_required");
    const [[key, question] = ["", {}]] = Object.entries(inputRequests);
    expect(question).toMatchObject({ params: { message: "Write q1?", requestedSchema: { required: ["sure"] } } });
    await tasks.update(taskId, { [key]: accept({ sure: true }) });
    const { result } = await tasks.reaches(taskId, "completed");
    expect(result.content[0].text).toContain('"sure":true');
  });

  test("a question that is lost with the worker before it is recorded ends the job and its task with an error", async () => {
    const tasks = tasksAt(stack.url);
    const { taskId } = await tasks.call("research", { id: "t1", ms: 4_000 });
    // The task is recorded before the server asks; the question then cannot be recorded.
    await until("the task to be looked at", async () =>
      (await linesOf(file)).some((line) => line.startsWith("looked")),
    );
    await stack.resonate.kill();
    await until("the question", async () => (await callsOf("t1")).includes("asked t1"));
    await stack.workers[0]?.kill();
    await stack.resonate.start();
    await stack.workers[0]?.start();
    // The time that the worker waits for a lost question passes.
    let status = "working";
    for (let i = 0; i < 60 && status !== "completed"; i++) {
      await stack.clock.advance(1_000);
      ({ status } = await tasks.get(taskId));
    }
    const { result } = await tasks.reaches(taskId, "completed", 60_000);
    expect(result.structuredContent.error).toMatch(
      /question that was lost .* Whether the call had its effect is unknown/,
    );
    expect(await callsOf("t1")).toEqual(["research t1", "asked t1"]);
  });
});
