/** `subscriptions/listen` with task ids: each change of a task, pushed. */
import { isDeepStrictEqual } from "node:util";
import { Codec } from "@resonatehq/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { journalEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import type { Gate } from "../support/gate.ts";
import { SEATTLE } from "../support/months.ts";
import { rpc } from "../support/rpc.ts";
import { type GatedStack, startGatedStack } from "../support/stack.ts";
import { accept, CAPABILITIES, subscribe, TASK_PROGRAMS, tasksAt, type WireTask } from "./support.ts";

let gate: Gate;
let stack: GatedStack;
let tasks: ReturnType<typeof tasksAt>;
beforeAll(async () => {
  stack = await startGatedStack({ programs: TASK_PROGRAMS });
  gate = stack.gate;
  tasks = tasksAt(stack.url);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** The fields of a task that do not depend on the time of the request. */
const lasting = ({ pollIntervalMs, resultType, _meta, ...task }: WireTask) => task;

const acknowledgement = (taskIds: string[]) => ({
  jsonrpc: "2.0",
  method: "notifications/subscriptions/acknowledged",
  params: { notifications: { taskIds }, _meta: { "io.modelcontextprotocol/subscriptionId": "s" } },
});

const timer = (timer_name: string, seconds = 3_600) => tasks.call("timer", { timer_name, seconds });

test("the acknowledgement comes first, and names only the existing tasks", async () => {
  const { taskId } = await timer("acknowledged");
  const forged = `${taskId.slice(0, -2)}AA`;
  await using subscription = await subscribe(stack.url, [forged, taskId, "timer_acknowledged", taskId]);
  await until("the acknowledgement", () => subscription.messages.length > 0);
  expect(subscription.messages[0]).toEqual(acknowledgement([taskId]));
  await tasks.cancel(taskId);
  await subscription.ended;
  expect(subscription.messages.slice(1)).toMatchObject([
    {
      jsonrpc: "2.0",
      method: "notifications/tasks",
      params: { taskId, status: "cancelled", _meta: { "io.modelcontextprotocol/subscriptionId": "s" } },
    },
    { jsonrpc: "2.0", id: "s", result: { resultType: "complete" } },
  ]);
});

describe("a notification has the task that tasks/get returns at that moment:", () => {
  test("a question asked, answered, and the job completed", async () => {
    const { taskId } = await tasks.call("confirm_delete", { filename: "told" });
    await using subscription = await subscribe(stack.url, [taskId]);
    const asked = await subscription.told(taskId, "input_required");
    expect(lasting(asked)).toEqual(lasting(await tasks.get(taskId)));
    const [key = ""] = Object.keys(asked.inputRequests);
    await tasks.update(taskId, { [key]: accept({ confirm: true }) });
    const completed = await subscription.told(taskId, "completed");
    expect(lasting(completed)).toEqual(lasting(await tasks.get(taskId)));
    expect(completed.result.structuredContent.result).toBe("deleted told");
    await subscription.ended;
    // The end may follow the answer so soon that there is no notification in between.
    const told = subscription.tasks().map(({ status }) => status);
    expect(["input_required,completed", "input_required,working,completed"]).toContain(told.join());
  });

  test("one of two questions answered", async () => {
    const { taskId } = await tasks.call("multi_input", { name: "told" });
    await using subscription = await subscribe(stack.url, [taskId]);
    const open = (count: number) => (task: WireTask) => Object.keys(task.inputRequests ?? {}).length === count;
    const [first = "", second = ""] = Object.keys((await subscription.told(taskId, open(2))).inputRequests);
    const before = subscription.tasks().length;
    await tasks.update(taskId, { [first]: accept({ name: "Ada" }) });
    await until("another notification", () => subscription.tasks().length > before);
    const told = () => subscription.tasks().at(-1) as WireTask;
    expect(Object.keys(told().inputRequests)).toEqual([second]);
    // Other changes in the meantime are pushed too.
    await until("both to agree", async () => isDeepStrictEqual(lasting(await tasks.get(taskId)), lasting(told())));
  });

  /** The part of a status message after the job name. */
  const told = (message: string | undefined) => message?.split(": ").at(1);

  test("progress, month by month", async () => {
    const answer = stack.archive.control.hold(1, "2012-02");
    const { taskId } = await tasks.call("weather_range", { ...SEATTLE, from: "2012-01", to: "2012-02" });
    await using subscription = await subscribe(stack.url, [taskId]);
    const part = await subscription.told(taskId, ({ statusMessage }) => told(statusMessage) === "1 of 2 months");
    expect(lasting(part)).toEqual(lasting(await tasks.get(taskId)));
    expect(part.status).toBe("working");
    answer();
    await subscription.told(taskId, "completed");
    const messages = subscription.tasks().map(({ statusMessage }) => told(statusMessage));
    expect(messages.indexOf("1 of 2 months")).toBeLessThan(messages.indexOf(undefined));
  });

  test.each([
    ["completed", () => timer("told", 1)],
    ["completed", () => tasks.call("failing_job", {})],
    ["failed", () => tasks.call("protocol_error_job", {})],
    ["cancelled", () => timer("told cancelled")],
  ])("%s", async (status, start) => {
    const { taskId } = await start();
    await using subscription = await subscribe(stack.url, [taskId]);
    if (status === "cancelled") await tasks.cancel(taskId);
    const told = await subscription.told(taskId, status);
    expect(lasting(told)).toEqual(lasting(await tasks.get(taskId)));
    await subscription.ended;
    expect(subscription.tasks()).toEqual([told]);
  });
});

test("a task that has already ended is pushed at once", async () => {
  const { taskId } = await timer("ended before");
  await tasks.cancel(taskId);
  await using subscription = await subscribe(stack.url, [taskId]);
  await subscription.ended;
  expect(subscription.tasks().map(lasting)).toEqual([lasting(await tasks.get(taskId))]);
});

test("a subscription to tasks that do not exist ends at once", async () => {
  await using subscription = await subscribe(stack.url, ["none", "A".repeat(900_000), "日".repeat(100_000)]);
  await subscription.ended;
  expect(subscription.messages).toEqual([acknowledgement([]), expect.objectContaining({ id: "s" })]);
});

test.each([[], "all", [7], Array.from({ length: 101 }, (_, n) => `task ${n}`)].map((taskIds) => ({ taskIds })))(
  "is refused: $taskIds",
  async (notifications) => {
    const answer = await rpc(stack.url, "subscriptions/listen", { notifications }, { capabilities: CAPABILITIES });
    expect(answer.error).toMatchObject({ code: -32602, message: expect.stringContaining("1 to 100 task ids") });
  },
);

test("many tasks on one stream take one connection to the Resonate server, which ends with the stream", async () => {
  await until("no connection", () => gate.streams.open === 0);
  const created = await Promise.all(Array.from({ length: 30 }, (_, n) => timer(`one of many ${n}`)));
  const ids = created.map(({ taskId }) => taskId);
  await using subscription = await subscribe(stack.url, ids);
  await until("the connection", () => gate.streams.open === 1);
  await Promise.all(ids.slice(0, 29).map((taskId) => tasks.cancel(taskId)));
  await until("all but one to be told", () => subscription.tasks().length === 29);
  expect(gate.streams.open).toBe(1);
  expect(new Set(subscription.tasks().map(({ taskId }) => taskId))).toEqual(new Set(ids.slice(0, 29)));
  await tasks.cancel(ids[29] as string);
  await subscription.ended;
  await until("the connection to be closed", () => gate.streams.open === 0);
});

test("a client that leaves leaves no connection behind", async () => {
  const { taskId } = await timer("left");
  const subscription = await subscribe(stack.url, [taskId]);
  await until("the connection", () => gate.streams.open === 1);
  subscription.leave();
  await until("the connection to be closed", () => gate.streams.open === 0);
});

test("a failed registration of listeners is repeated over one and the same connection", async () => {
  const { taskId } = await timer("not listened to");
  await until("no connection", () => gate.streams.open === 0);
  await using subscription = await subscribe(stack.url, [taskId]);
  for (let lost = 0; lost < 3; lost++) await gate.loseAnswer("promise.register_listener");
  await until("one connection", () => gate.streams.open === 1);
  await tasks.cancel(taskId);
  await subscription.told(taskId, "cancelled");
});

test("a client is notified even if the server never opens the connection", async () => {
  const { taskId } = await timer("never opened");
  gate.holdStreams(true);
  await using subscription = await subscribe(stack.url, [taskId]);
  await tasks.cancel(taskId);
  await subscription.told(taskId, "cancelled");
  await subscription.ended;
  gate.holdStreams(false);
});

test("two clients are notified of the same task", async () => {
  const { taskId } = await timer("two clients");
  await using one = await subscribe(stack.url, [taskId]);
  await using other = await subscribe(stack.url, [taskId]);
  const listeners = () => gate.calls.filter(({ kind, id }) => kind.endsWith("listener") && id?.endsWith("two clients"));
  await until("both to listen", () => listeners().length >= 2);
  expect(gate.streams.open).toBe(1);
  await tasks.cancel(taskId);
  expect(await one.told(taskId, "cancelled")).toEqual(await other.told(taskId, "cancelled"));
});

describe("a change while the connection to the Resonate server is", () => {
  test("lost is pushed when the connection is back", async () => {
    const { taskId } = await timer("lost");
    const { taskId: later } = await timer("lost, later");
    await using subscription = await subscribe(stack.url, [taskId, later]);
    await until("the connection", () => gate.streams.open === 1);
    gate.refuseStreams(true);
    gate.cutStreams();
    await tasks.cancel(taskId);
    gate.refuseStreams(false);
    await subscription.told(taskId, "cancelled");
    await tasks.cancel(later);
    await subscription.told(later, "cancelled");
  });

  test("down, during a question, is pushed when the connection is back", async () => {
    const { taskId } = await tasks.call("confirm_delete", { filename: "outage" });
    await using subscription = await subscribe(stack.url, [taskId]);
    await subscription.told(taskId, "input_required");
    await gate.close();
    // The answer is given at the server itself, as by an edge that still reaches it.
    const job = `${stack.namespace}confirm_delete_outage`;
    const value = new Codec().encode(accept({ confirm: true }));
    await stack.resonate.call("promise.settle", { id: journalEntryId(job, 1), state: "resolved", value });
    await stack.resonate.settled(job);
    await gate.open();
    expect((await subscription.told(taskId, "completed")).result.structuredContent.result).toBe("deleted outage");
  });
});
