/** Schedules: jobs that start jobs, with the real client and worker. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { programOf } from "../support/programs.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { eventsAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };

let stack: Stack;
let ada: TestCaller;
beforeAll(async () => {
  stack = await startStack({ workers: 1, bindings: bearerBindings(TOKENS) });
  ada = callerAt(stack.url, TOKENS.ada);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const soon = (ms = 2_000) => new Date(Date.now() + ms).toISOString();
const tea = { tool: "set_timer", arguments: JSON.stringify({ timer_name: "tea", seconds: 1 }) };
const statusOf = async (name: string) => (await ada.call("probe_status", { job_names: [name] })).statuses[0];

test("a schedule starts a job that is named by its time and whose end is an event, and then completes", async () => {
  await using told = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await told.poll({ name: "job.ended" });
  const at = soon();
  const scheduled = await ada.call("schedule_job", { name: "once", ...tea, at });
  expect(scheduled).toEqual({ job_name: "schedule_once", status: "running", next_at: at });
  expect((await ada.call("list_jobs")).jobs.map((job: { job_name: string }) => job.job_name)).toContain(
    "schedule_once",
  );
  const { events } = await told.collect(cursor, 2);
  const names = events.map(({ data }) => data.job_name);
  const fired = `timer_tea@${at.slice(0, 19).replace(/[-:]/g, "")}Z`;
  expect(names.sort()).toEqual(["schedule_once", fired]);
  const arguments_ = { schedule: "schedule_once", kinds: ["timer"] };
  const firings = await told.poll({ name: "job.ended", cursor, arguments: arguments_ });
  expect(firings.events.map(({ data }) => data.job_name)).toEqual([fired]);
  const none = await told.poll({ name: "job.ended", cursor, arguments: { schedule: "schedule_other" } });
  expect(none.events).toEqual([]);
  expect(await statusOf("schedule_once")).toMatchObject({ status: "complete", result: { firings: [fired] } });
});

test("a schedule fires although the edge is down at its time", async () => {
  const at = soon();
  await ada.call("schedule_job", { name: "away", ...tea, arguments: { timer_name: "away", seconds: 1 }, at });
  await stack.edge.kill();
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  await stack.edge.start();
  const fired = `timer_away@${at.slice(0, 19).replace(/[-:]/g, "")}Z`;
  await until("the firing", async () => (await statusOf(fired)).status === "complete", 30_000);
});

test("a schedule is probed and cancelled like a job, and a second schedule of its name does not change it", async () => {
  const args = { name: "nightly", ...tea, cron: "0 3 * * *", timezone: "Europe/Zurich" };
  const first = await ada.call("schedule_job", args);
  expect(first.next_at).toMatch(/T0[12]:00:00/);
  expect(await ada.call("schedule_job", args)).toEqual(first);
  const reordered = JSON.stringify({ seconds: 1, timer_name: "tea" });
  expect(await ada.call("schedule_job", { ...args, arguments: reordered })).toEqual(first);
  const other = await ada.call("schedule_job", { ...args, cron: "0 4 * * *" });
  expect(other).toMatchObject({ next_at: first.next_at, note: expect.stringContaining("unchanged") });
  await until("it to tell its next firing", async () =>
    (await statusOf("schedule_nightly")).doing?.includes(first.next_at),
  );
  // Other callers do not find it.
  const bob = callerAt(stack.url, TOKENS.bob);
  expect((await bob.call("probe_status", { job_names: ["schedule_nightly"] })).statuses[0].status).toBe("not_found");
  await ada.call("cancel_job", { job_names: ["schedule_nightly"] });
  expect((await statusOf("schedule_nightly")).status).toBe("cancelled");
  expect(await ada.call("schedule_job", { ...args, cron: "0 4 * * *" })).toMatchObject({
    job_name: "schedule_nightly~2",
    status: "running",
  });
});

test("an invalid schedule is refused at once", async () => {
  for (const [wrong, words] of [
    [{ tool: "probe_status" }, "starts no job"],
    [{ tool: "no_such_tool" }, "starts no job"],
    [{ arguments: "[1]" }, "JSON object"],
    [{ arguments: { timer_name: "x" } }, "seconds"],
    [{ at: "yesterday" }, "ISO 8601"],
    [{ at: undefined, cron: "every day" }, "five fields"],
    [{ at: undefined, every: 5 }, "60"],
    [{ name: "a:b" }, "name"],
  ] as const)
    await expect(ada.call("schedule_job", { name: "wrong", ...tea, at: soon(), ...wrong })).rejects.toThrow(words);
});

test("a definition's schedule fires once even if everything is killed before; a replaced schedule does not fire", async () => {
  const data = await mkdtemp(join(tmpdir(), "scheduled-"));
  const bindings = { AT: soon(9 * 365 * 86_400_000) };
  const programs = { edge: "test/events/scheduled/edge.ts", worker: programOf("worker") };
  await using own = await startStack({ own: { data }, bindings, programs });
  const found = async (of: string) => {
    const { data } = await own.resonate.call("promise.search", { limit: 100 });
    const { promises } = data as { promises: { id: string; state: string }[] };
    const jobs = promises.map(({ id, state }) => [id.slice(own.namespace.length), state] as const);
    return jobs.filter(([name]) => name.startsWith(of) && !name.includes(":"));
  };
  /** Waits for schedules, which an edge creates when it answers its first request. */
  const made = async (count: number) => {
    await rpc(own.url, "tools/list", {});
    await until("the schedule", async () => (await found("schedule_")).length === count);
  };
  await made(1);
  await own.edge.kill();
  bindings.AT = soon(8_000);
  await own.edge.start();
  await made(2);
  for (const part of [own.server, own.workers[0], own.edge]) await part?.kill();
  for (const part of [own.server, own.workers[0], own.edge]) await part?.start();
  // No request reaches the edge from here on.
  const fired = `timer_nightly@${bindings.AT.slice(0, 19).replace(/[-:]/g, "")}Z`;
  await until("the firing's end", async () => (await found("timer_"))[0]?.[1] === "resolved", 60_000);
  await until("the schedule's end", async () => !(await found("schedule_")).some(([, state]) => state === "pending"));
  expect(await found("timer_")).toEqual([[fired, "resolved"]]);
  expect((await found("schedule_")).map(([, state]) => state).sort()).toEqual(["rejected_canceled", "resolved"]);
  await rm(data, { recursive: true, force: true });
});
