/** Which clients may use tasks, which ids are tasks, and how other requests are refused. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { JobHandles } from "../../../core/tools/job-handles.ts";
import { client2025 } from "../../support/clients.ts";
import { rpc, rpcHeaders, rpcMessage } from "../../support/rpc.ts";
import type { Stack } from "../../support/stack.ts";
import { CAPABILITIES, startTaskStack, tasksAt, type WireTask } from "../support.ts";

const KEY = randomBytes(32).toString("hex");
const TASKS = "io.modelcontextprotocol/tasks";

let stack: Stack;
let task: WireTask;
beforeAll(async () => {
  stack = await startTaskStack({ bindings: { TASK_KEY: KEY } });
  task = await tasksAt(stack.url).call("timer", { timer_name: "gates", seconds: 3_600 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const METHODS = ["tasks/get", "tasks/update", "tasks/cancel"];
const paramsOf = (method: string, taskId: unknown) =>
  method === "tasks/update" ? { taskId, inputResponses: {} } : { taskId };

describe("a client that did not declare the extension", () => {
  const capabilities = { elicitation: {}, extensions: { "com.example/other": {} } };
  const refusal = {
    status: 400,
    error: { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } },
  };

  test.each(METHODS)("is refused %s, with the capability that it lacks", async (method) => {
    const answer = await rpc(stack.url, method, paramsOf(method, task.taskId), { capabilities });
    expect(answer).toMatchObject(refusal);
  });

  test("is refused a subscription to tasks", async () => {
    const params = { notifications: { taskIds: [task.taskId] } };
    expect(await rpc(stack.url, "subscriptions/listen", params, { capabilities })).toMatchObject(refusal);
  });

  test("is refused a tool that always is a task, and nothing is started", async () => {
    expect(await rpc(stack.url, "tools/call", { name: "failing_job", arguments: {} }, { capabilities })).toMatchObject(
      refusal,
    );
    expect(await stack.resonate.get(`${stack.namespace}failing_job_once`)).toBeUndefined();
  });

  test("gets the result from a tool that may be a task", async () => {
    const args = { timer_name: "undeclared", seconds: 1 };
    const { result } = await rpc(stack.url, "tools/call", { name: "timer", arguments: args }, { capabilities });
    expect(result).toMatchObject({
      resultType: "complete",
      structuredContent: { job_name: "timer_undeclared", status: "complete", result: "complete" },
    });
    expect(result).not.toHaveProperty("taskId");
  });
});

test("the extension is advertised by server/discover", async () => {
  const { result } = await rpc(stack.url, "server/discover");
  expect(result.capabilities.extensions).toMatchObject({ [TASKS]: {} });
});

test.each(["tasks/list", "tasks/result"])("%s does not exist", async (method) => {
  const answer = await rpc(stack.url, method, { taskId: task.taskId });
  expect(answer).toMatchObject({ status: 404, error: { code: -32601 } });
});

describe("a client of 2025", () => {
  const post = async (method: string, params: object) => {
    const headers = { ...rpcHeaders(method), "mcp-protocol-version": "2025-11-25" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    return (await fetch(stack.url, { method: "POST", headers, body })).text();
  };

  test("sees no extension and has no task methods, even if it declares the extension", async () => {
    const clientInfo = { name: "test", version: "1" };
    const capabilities = CAPABILITIES;
    const opened = await post("initialize", { protocolVersion: "2025-11-25", clientInfo, capabilities });
    expect(opened).toContain("durable-mcp-edge");
    expect(opened).not.toContain("tasks");
    for (const method of METHODS) expect(await post(method, paramsOf(method, task.taskId))).toContain("-32601");
  });

  test("gets results from the tools that may be tasks", async () => {
    await using client = await client2025.connect(stack.url);
    const place = { latitude: 47.61, longitude: -122.33 };
    const month = await client.callTool("weather_data", { ...place, year: 2012, month: 1 });
    expect(month.content).toMatchObject({ status: "complete", result: { daily: { time: { length: 31 } } } });
    const range = await client.callTool("weather_range", { ...place, from: "2012-01", to: "2012-02" });
    expect(range.content).toMatchObject({ status: "complete", result: { months: [{ month: 1 }, { month: 2 }] } });
    const timer = await client.callTool("timer", { timer_name: "of 2025", seconds: 1 });
    expect(timer.content).toMatchObject({ job_name: "timer_of 2025", status: "complete" });
  });
});

describe("an id that is not that of a task", () => {
  const flip = (id: string, bit: number) => {
    const at = Math.floor(bit / 6);
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const flipped = alphabet[alphabet.indexOf(id[at] as string) ^ (1 << (bit % 6))];
    return id.slice(0, at) + flipped + id.slice(at + 1);
  };
  const mac = () => task.taskId.split(".")[1] as string;
  const body = () => task.taskId.split(".")[0] as string;

  const IDS: [string, () => unknown | Promise<unknown>][] = [
    ["the job's name", () => "timer_gates"],
    ["the promise's id", () => `${stack.namespace}timer_gates`],
    ["not a string", () => 7],
    ["missing", () => undefined],
    ["truncated", () => task.taskId.slice(0, -1)],
    ["without its seal", () => body()],
    ["with an empty seal", () => `${body()}.`],
    ["with something after the seal", () => `${task.taskId}.`],
    ["padded", () => `${task.taskId}=`],
    ["with another job's seal", () => `${Buffer.from("timer_other").toString("base64url")}.${mac()}`],
    ["with a bit of the name flipped", () => flip(task.taskId, 9)],
    ["sealed with another key", () => new JobHandles("x".repeat(32), stack.namespace).seal("timer_gates", "", 0)],
    ["of another deployment's namespace", () => new JobHandles(KEY, "elsewhere/").seal("timer_gates", "", 0)],
    ["another caller's", () => new JobHandles(KEY, stack.namespace).seal("timer_gates", "somebody", 0)],
    ["sealed, of a job that does not exist", () => new JobHandles(KEY, stack.namespace).seal("timer_never", "", 0)],
    ["sealed, of a text that is not a job name", () => new JobHandles(KEY, stack.namespace).seal("something", "", 0)],
  ];

  test.each(IDS)("%s: is an unknown task to every method", async (_what, id) => {
    const taskId = await id();
    for (const method of METHODS) {
      const answer = await rpc(stack.url, method, paramsOf(method, taskId), { capabilities: CAPABILITIES });
      expect([method, answer.result, answer.error?.code]).toEqual([method, undefined, -32602]);
    }
  });

  test("with any bit of the seal flipped: is an unknown task", async () => {
    const start = (body().length + 1) * 6;
    const ids = Array.from({ length: mac().length * 6 }, (_, bit) => flip(task.taskId, start + bit));
    expect(new Set(ids).size).toBe(258);
    const codes = await Promise.all(
      ids.map(async (taskId) => (await rpc(stack.url, "tasks/get", { taskId })).error?.code),
    );
    expect(new Set(codes)).toEqual(new Set([-32602]));
    expect((await rpc(stack.url, "tasks/get", { taskId: task.taskId })).result.status).toBe("working");
  });

  test("the unchanged id is the task", async () => {
    expect(await new JobHandles(KEY, stack.namespace).seal("timer_gates", "", Date.parse(task.createdAt))).toBe(
      task.taskId,
    );
  });
});

describe("the Mcp-Name header", () => {
  const post = async (method: string, headers: Record<string, string>, given?: object) => {
    const body = JSON.stringify(rpcMessage(method, given ?? paramsOf(method, task.taskId), CAPABILITIES));
    const response = await fetch(stack.url, { method: "POST", headers: { ...rpcHeaders(method), ...headers }, body });
    return { status: response.status, ...((await response.json()) as { error?: { code: number } }) };
  };

  test.each(METHODS.slice(0, 2))("has to name the task of %s if the header is present", async (method) => {
    const mismatch = { status: 400, error: { code: -32020 } };
    expect(await post(method, {})).toMatchObject({ status: 200, result: {} });
    expect(await post(method, { "mcp-name": "another" })).toMatchObject(mismatch);
    expect(await post(method, { "mcp-name": task.taskId })).toMatchObject({ status: 200, result: {} });
  });

  test("may be missing in requests about a task only", async () => {
    const { taskId } = await tasksAt(stack.url).call("timer", { timer_name: "unnamed", seconds: 3_600 });
    expect(await post("tasks/cancel", {}, { taskId })).toMatchObject({ status: 200, result: {} });
    expect((await tasksAt(stack.url).get(taskId)).status).toBe("cancelled");
    const unheardOf = await post("tasks/cancel", {}, { taskId: "日本 =?base64?eA==?=" });
    expect(unheardOf).toMatchObject({ error: { code: -32602 } });
    const call = { name: "get_timer_status", arguments: { timer_name: "unnamed" } };
    expect(await post("tools/call", {}, call)).toMatchObject({ status: 400, error: { code: -32020 } });
  });

  test("that names another task prevents a cancellation", async () => {
    expect(await post("tasks/cancel", { "mcp-name": "another" })).toMatchObject({ error: { code: -32020 } });
    expect((await tasksAt(stack.url).get(task.taskId)).status).toBe("working");
  });
});
