/** A task that works, asks, was just answered or just cancelled ends correctly when any part is killed. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type Month, monthsOfItsOwn } from "../support/months.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import type { Stack } from "../support/stack.ts";
import { accept, startTaskStack, tasksAt, type WireTask } from "./support.ts";

let data: string;
let resonate: Resonate;
/** The gate between the Resonate server and both the edge and the worker. */
let gate: Gate;
let stack: Stack;
let tasks: ReturnType<typeof tasksAt>;
const args = () => ["--data", data];
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "tasks-crash-"));
  resonate = await startResonate({ own: true, args: args() });
  gate = await startGate(resonate.url);
  const at = { RESONATE_URL: gate.url };
  // The short lease lets a killed worker's jobs move on soon.
  stack = await startTaskStack({ resonate, env: { ...at, LEASE_SECONDS: "2" }, bindings: at });
  tasks = tasksAt(stack.url);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await gate?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
  await rm(data, { recursive: true, force: true });
});

const nextMonth = monthsOfItsOwn();

const VICTIMS: [string, () => Promise<void>][] = [
  ["the worker", () => restart(stack.workers[0])],
  ["the edge", () => restart(stack.edge)],
  ["every connection to the Resonate server", () => gate.close().then(gate.open)],
  ["the Resonate server", restartServer],
];

async function restart(part: Stack["edge"] | undefined) {
  if (!part) expect.fail("there is no such process");
  await part.end();
  await part.start();
}

async function restartServer() {
  const port = Number(new URL(resonate.url).port);
  await resonate[Symbol.asyncDispose]();
  resonate = await startResonate({ own: true, port, args: args() });
}

const asked = async (filename: string) => {
  const { taskId } = await tasks.call("confirm_delete", { filename });
  const { inputRequests } = await tasks.reaches(taskId, "input_required");
  return { taskId, inputRequests, key: Object.keys(inputRequests)[0] as string };
};

/** Starts a gathering whose request is under way until `answer` is called. */
async function gathering(): Promise<{ taskId: string; month: Month; answer: () => void }> {
  const month = nextMonth();
  const answer = stack.archive.control.hold(1, month.archived);
  const { taskId } = await tasks.call("weather_data", month.args);
  await until("the archive to be asked", () => stack.archive.control.count(month.archived) > 0);
  return { taskId, month, answer };
}

test.each(VICTIMS)("kill -9 of %s", async (victim, kill) => {
  const sleeping = await tasks.call("timer", { timer_name: `sleeping ${victim}`, seconds: 6 });
  const open = await asked(`open ${victim}`);
  const answered = await asked(`answered ${victim}`);
  const cancelledAsking = await asked(`cancelled ${victim}`);
  const cancelledSleeping = await tasks.call("timer", { timer_name: `cancelled ${victim}`, seconds: 6 });
  const [working, cancelledWorking] = await Promise.all([gathering(), gathering()]);

  await Promise.all([
    tasks.update(answered.taskId, { [answered.key]: accept({ confirm: true }) }),
    ...[cancelledAsking, cancelledSleeping, cancelledWorking].map(({ taskId }) => tasks.cancel(taskId)),
  ]);
  await kill();
  for (const { answer } of [working, cancelledWorking]) answer();

  // A question stays as it was, and can still be answered.
  expect(await tasks.get(open.taskId)).toMatchObject({ status: "input_required", inputRequests: open.inputRequests });
  await tasks.update(open.taskId, { [open.key]: { action: "decline" } });

  const resultOf = async (taskId: string) => (await tasks.reaches(taskId, "completed")).result.structuredContent;
  expect(await resultOf(open.taskId)).toMatchObject({ status: "complete", result: `kept open ${victim}` });
  expect(await resultOf(answered.taskId)).toMatchObject({ status: "complete", result: `deleted answered ${victim}` });
  expect(await resultOf(sleeping.taskId)).toMatchObject({ status: "complete", result: "complete" });
  expect(await resultOf(working.taskId)).toMatchObject({
    status: "complete",
    result: { daily: { time: expect.arrayContaining([working.month.first]) } },
  });
  // A request is repeated only by another worker, or when the lease lapsed while the server was away.
  const requests = stack.archive.control.count(working.month.archived);
  expect(requests).toBeLessThanOrEqual(["the worker", "the Resonate server"].includes(victim) ? 2 : 1);
  expect(stack.archive.control.count(cancelledWorking.month.archived)).toBe(1);
  for (const { taskId } of [cancelledAsking, cancelledSleeping, cancelledWorking]) {
    expect((await tasks.get(taskId)).status).toBe("cancelled");
  }
});

test("a task survives when all parts are killed at once after its start, its questions, and each of its answers", async () => {
  const killAll = () => Promise.all([stack.workers[0], stack.edge].map(restart).concat(restartServer()));
  const { taskId } = await tasks.call("multi_input", { name: "all at once" });
  await killAll();
  const both = ({ inputRequests = {} }: WireTask) => Object.keys(inputRequests).length === 2;
  const { inputRequests } = await tasks.reaches(taskId, both);
  const [name = "", sure = ""] = Object.keys(inputRequests);
  await killAll();
  await tasks.update(taskId, { [name]: accept({ name: "Ada" }) });
  await killAll();
  expect(Object.keys((await tasks.get(taskId)).inputRequests)).toEqual([sure]);
  await tasks.update(taskId, { [sure]: accept({ confirm: true }) });
  await killAll();
  const { result } = await tasks.reaches(taskId, "completed");
  const [given, certain] = [accept({ name: "Ada" }), accept({ confirm: true })];
  expect(result.structuredContent.result).toEqual({ name: given, sure: certain });
});
