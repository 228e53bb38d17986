/** A caller's stored bytes: counted when jobs start and end, limited, reported, and freed when jobs are removed. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import { call, send } from "../limits/support.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { bearerBindings, callerAt, type TestCaller } from "./support.ts";

const LIMIT = 20_000;

let stack: Stack;
let ada: TestCaller;
let bob: TestCaller;
beforeAll(async () => {
  const bindings = {
    ...bearerBindings({ ada: "static-token-of-ada", bob: "static-token-of-bob", dora: "static-token-of-dora" }),
    MAX_STORED_BYTES: String(LIMIT),
  };
  stack = await startStack({ workers: 0, bindings });
  [ada, bob] = [callerAt(stack.url, "static-token-of-ada"), callerAt(stack.url, "static-token-of-bob")];
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const set = (caller: TestCaller, timer_name: string) => caller.call("set_timer", { timer_name, seconds: 3_600 });
const stored = async (caller: TestCaller) => (await caller.call("list_jobs", {})).stored;

test("a long call counts as more requests than a short one", async () => {
  await using limited = await startStack({
    workers: 0,
    resonate: stack.resonate,
    bindings: { ...bearerBindings({ ada: "static-token-of-ada" }), RATE_LIMIT: "100" },
  });
  const body = call("set_timer", { timer_name: "x".repeat(900_000), seconds: 5 });
  const headers = { authorization: "Bearer static-token-of-ada" };
  const statuses: number[] = [];
  for (let n = 0; n < 3; n++) statuses.push((await send(limited.url, { headers, body })).status);
  expect(statuses).toEqual([200, 200, 429]);
});

test("the list reports a caller's stored bytes, which grow by results; above the limit starts are refused", async () => {
  expect(await stored(ada)).toEqual({ bytes: 0, limit: LIMIT });
  await set(ada, "first");
  const { bytes } = await stored(ada);
  expect(bytes).toBeGreaterThan(1_000);
  expect(bytes).toBeLessThan(2_000);
  const { key } = await callerOf("ada");
  const id = `${stack.namespace}${key}timer_first`;
  await stack.resonate.call("promise.settle", { id, state: "resolved", value: encodeValue("x".repeat(LIMIT)) });
  await ada.call("await_result", { job_names: ["timer_first"] });
  await expect.poll(() => stored(ada).then((after) => after.bytes)).toBeGreaterThan(LIMIT);
  await expect(set(ada, "second")).rejects.toThrow(/^Nothing was done: .*20000 bytes.*MAX_STORED_BYTES/);
  // Existing jobs are still found, and other callers have their own limit.
  expect(await ada.call("set_timer", { timer_name: "first", seconds: 3_600 })).toMatchObject({ status: "complete" });
  expect((await ada.call("probe_status", { job_names: ["timer_second"] })).statuses[0].status).toBe("not_found");
  expect(await set(bob, "second")).toMatchObject({ status: "running" });
});

test("a caller can remove only its own ended jobs, which frees their bytes", async () => {
  const dora = callerAt(stack.url, "static-token-of-dora");
  const { key } = await callerOf("dora");
  await set(dora, "ended");
  await set(dora, "running");
  const { bytes } = await stored(dora);
  const value = encodeValue("x".repeat(LIMIT));
  await stack.resonate.call("promise.settle", { id: `${stack.namespace}${key}timer_ended`, state: "resolved", value });
  await dora.call("probe_status", { job_names: ["timer_ended"] });
  const names = ["timer_ended", "timer_running", "timer_none"];
  expect(await bob.call("forget_jobs", { job_names: names })).toMatchObject({ not_found: names });
  const outcome = await dora.call("forget_jobs", { job_names: names });
  expect(outcome).toMatchObject({ running: ["timer_running"], not_found: ["timer_none"] });
  const listed = (await dora.call("list_jobs", {})).jobs.map(({ job_name }: { job_name: string }) => job_name);
  expect(listed).toEqual(["timer_running"]);
  // The standalone server cannot remove promises: the job is only hidden from the list.
  if (outcome.hidden) return expect(outcome.hidden).toEqual(["timer_ended"]);
  expect(outcome.forgotten).toEqual(["timer_ended"]);
  expect((await stored(dora)).bytes).toBeLessThan(bytes);
  expect((await dora.call("probe_status", { job_names: ["timer_ended"] })).statuses[0].status).toBe("not_found");
  expect(await dora.call("set_timer", { timer_name: "ended", seconds: 3_600 })).toMatchObject({ status: "running" });
});

test("a job is not removed before its clean-up is over: its steps may have to be undone", async () => {
  const dora = callerAt(stack.url, "static-token-of-dora");
  const place = { latitude: 47.6, longitude: -122.3, from: "2013-01", to: "2013-02", confirm: true };
  await dora.tasks.call("weather_range", place);
  const [{ job_name }] = (await dora.call("list_jobs", { kind: "weather_range" })).jobs;
  expect(await dora.call("cancel_job", { job_names: [job_name] })).toMatchObject({ cancelled: [job_name] });
  expect(await dora.call("forget_jobs", { job_names: [job_name] })).toMatchObject({ running: [job_name] });
});

test.each([
  ["a step's result", { step: 9_000, told: 0, child: 0 }],
  ["a partial result", { step: 0, told: 9_000, child: 0 }],
  ["a child job", { step: 0, told: 0, child: 9_000 }],
])("%s counts as the caller's stored bytes when the job ends", async (what, args) => {
  await using one = await startStack({
    resonate: stack.resonate,
    programs: { edge: "test/limits/fixture/limits-edge.ts", worker: "test/limits/fixture/limits-worker.ts" },
    bindings: { ...bearerBindings({ eve: "static-token-of-eve" }), MAX_STORED_BYTES: String(LIMIT) },
  });
  const eve = callerAt(one.url, "static-token-of-eve");
  const keep = (name: string) => eve.call("hoard", { name, ...args });
  expect(await keep("first")).toMatchObject({ status: "complete", result: "done" });
  await expect.poll(() => stored(eve).then(({ bytes }) => bytes)).toBeGreaterThan(9_000);
  expect((await stored(eve)).bytes).toBeLessThan(14_000);
  await keep("second");
  await expect.poll(() => stored(eve).then(({ bytes }) => bytes), { timeout: 30_000 }).toBeGreaterThan(LIMIT);
  await expect(keep(`third, ${what}`)).rejects.toThrow(/MAX_STORED_BYTES/);
});

test.each([
  ["is cancelled", 10_000, {}],
  ["runs out of time", 49_000, { ends: 5_000 }],
])("a job with much partial output that %s can be read as any, and its output counts", async (how, told, args) => {
  await using one = await startStack({
    resonate: stack.resonate,
    programs: { edge: "test/limits/fixture/limits-edge.ts", worker: "test/limits/fixture/limits-worker.ts" },
    bindings: { ...bearerBindings({ mallory: "static-token-of-mallory" }), MAX_STORED_BYTES: "300000" },
  });
  const mallory = callerAt(one.url, "static-token-of-mallory");
  const times = Math.floor(300_000 / told);
  const hoard = { step: 0, told, times, child: 0, stays: true };
  const start = (name: string) => mallory.tasks.call("hoard", { name, ...hoard, ...args });
  await start("first");
  const [{ job_name }] = (await mallory.call("list_jobs", {})).jobs;
  const look = async () =>
    (await mallory.call("probe_status", { job_names: [job_name], partial_from: times - 1 })).statuses[0];
  await expect.poll(async () => (await look()).partial?.next_offset, { timeout: 60_000 }).toBe(times);
  // Only the beginning of a long partial result is shown, since an answer has no room for more.
  expect((await look()).partial.values[0]).toMatch(told > 20_000 ? /^"x{9999} …$/ : /^x{10000}$/);
  if (how === "is cancelled") await mallory.call("cancel_job", { job_names: [job_name] });
  await expect.poll(async () => (await look()).status, { timeout: 60_000 }).toMatch(/cancelled|timed_out/);
  await mallory.call("list_jobs", {});
  await expect.poll(() => stored(mallory).then(({ bytes }) => bytes)).toBeGreaterThan(294_000);
  await expect(mallory.call("hoard", { name: "second", ...hoard })).rejects.toThrow(/MAX_STORED_BYTES/);
});
