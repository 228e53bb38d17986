/**
 * Two callers of one deployment, with every tool and task method: one caller's jobs do not exist for the other in any
 * request. With `RESONATE_URL` and `RESONATE_TOKEN` set, on that Resonate server.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { until } from "../../testing/stack/program.ts";
import type { Stack } from "../support/stack.ts";
import { accept, startTaskStack, subscribe } from "../tasks/support.ts";
import { bearerBindings, callerAt, type TestCaller } from "./support.ts";

let stack: Stack;
let ada: TestCaller;
let bob: TestCaller;
beforeAll(async () => {
  const tokens = { ada: "static-token-of-ada", bob: "static-token-of-bob" };
  stack = await startTaskStack({ bindings: bearerBindings(tokens) });
  ada = callerAt(stack.url, tokens.ada);
  bob = callerAt(stack.url, tokens.bob);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const RANGE = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2012-02" };
const LONG_RANGE = { ...RANGE, to: "2014-12" };
const SHORT_SECONDS = 2;
const LONG_SECONDS = 3_600;

/** Names by which a caller might try to reach another caller's timer. */
async function guesses(name: string, owner: string): Promise<string[]> {
  const { key } = await callerOf(owner);
  const names = [name, `${key}${name}`, `${stack.namespace}${key}${name}`, `./${key}${name}`, `${name}:0`, `${name}~2`];
  return [...new Set([...names, `timer_../${key}${name}`, `timer_${key}${name}`])];
}

describe("a timer", () => {
  test("of the same name is a different timer for each caller", async () => {
    const [hers, his] = await Promise.all([
      ada.call("set_timer", { timer_name: "tea", seconds: LONG_SECONDS }),
      bob.call("set_timer", { timer_name: "tea", seconds: SHORT_SECONDS }),
    ]);
    expect([hers.promise_id, his.promise_id]).toEqual(["timer_tea", "timer_tea"]);
    const { results } = await bob.call("await_result", { job_names: ["timer_tea"] });
    expect(results).toEqual({ timer_tea: "complete" });
    expect(await ada.call("get_timer_status", { timer_name: "tea" })).toMatchObject({
      status: "running",
      fires_at: hers.fires_at,
    });
    expect(await ada.call("await_result", { job_names: ["timer_tea"], timeout_seconds: 1 })).toMatchObject({
      running: ["timer_tea"],
    });
    expect(await bob.call("cancel_job", { job_names: ["timer_tea"] })).toMatchObject({
      already_finished: ["timer_tea"],
    });
    expect(await ada.call("get_timer_status", { timer_name: "tea" })).toMatchObject({ status: "running" });
  });

  test("of another caller is not found by any name, and cannot be changed", async () => {
    await ada.call("set_timer", { timer_name: "secret", seconds: LONG_SECONDS });
    const names = await guesses("timer_secret", "ada");
    const { statuses } = await bob.call("probe_status", { job_names: names });
    expect(statuses.map(({ status }: { status: string }) => status)).toEqual(names.map(() => "not_found"));
    const waited = await bob.call("await_result", { job_names: names, timeout_seconds: 5 });
    expect(Object.keys(waited.errors).sort()).toEqual(names.toSorted());
    expect(await bob.call("cancel_job", { job_names: names })).toEqual({
      cancelled: [],
      already_finished: [],
      not_found: names,
    });
    for (const name of names) {
      const timer_name = name.replace(/^timer_/, "").replaceAll(/[:~]/g, " ");
      expect(await bob.call("get_timer_status", { timer_name })).toMatchObject({ status: "not_found" });
    }
    expect(await ada.call("get_timer_status", { timer_name: "secret" })).toMatchObject({ status: "running" });
  });

  test("of another caller does not prevent setting one of the same name, and is not found by it", async () => {
    await ada.call("set_timer", { timer_name: "nap", seconds: LONG_SECONDS });
    const his = await bob.call("set_timer", { timer_name: "nap", seconds: LONG_SECONDS / 2 });
    expect(his.note).toBeUndefined();
    await bob.call("cancel_job", { job_names: ["timer_nap"] });
    expect(await bob.call("set_timer", { timer_name: "nap", seconds: 60 })).toMatchObject({
      promise_id: "timer_nap~2",
    });
    const { statuses } = await ada.call("probe_status", { job_names: ["timer_nap", "timer_nap~2"] });
    expect(statuses).toMatchObject([{ status: "running" }, { status: "not_found" }]);
  });
});

describe("a range", () => {
  test("is a job of its own for each caller, and its months are gathered once", async () => {
    const [hers, his] = await Promise.all([ada.call("weather_range", RANGE), bob.call("weather_range", RANGE)]);
    expect(hers).toMatchObject({ status: "complete", result: { months: [{ month: 1 }, { month: 2 }] } });
    expect(his.result).toEqual(hers.result);
    expect(stack.archive.control.count("2012-01")).toBe(1);
    const runs = (stack.workers[0] ?? stack.edge).process
      .logs()
      .filter(({ msg, job }) => msg === "job started" && /range/.test(`${job}`));
    expect(new Set(runs.map(({ job }) => job)).size).toBe(2);
  });

  test("with a question can be answered only by its caller", async () => {
    const hers = await ada.tasks.call("weather_range", LONG_RANGE);
    const asked = await ada.tasks.reaches(hers.taskId, "input_required");
    const [key = ""] = Object.keys(asked.inputRequests);
    await expect(bob.tasks.update(hers.taskId, { [key]: accept({ confirm: true }) })).rejects.toThrow("no task");
    const his = await bob.tasks.call("weather_range", LONG_RANGE);
    await bob.tasks.reaches(his.taskId, "input_required");
    // A tool call with `confirm` answers the caller's own open question, and not hers.
    const { result, job_name } = await bob.call("weather_range", { ...LONG_RANGE, confirm: true });
    expect(result).toBeUndefined(); // it is larger than an answer
    const { statuses } = await bob.call("probe_status", { job_names: [job_name], fields: ["months.month"] });
    expect(statuses[0].result.months.length).toBe(36);
    expect((await bob.tasks.get(his.taskId)).status).toBe("completed");
    expect((await ada.tasks.get(hers.taskId)).status).toBe("input_required");
    await ada.tasks.cancel(hers.taskId);
  });
});

describe("a task", () => {
  test("is unknown to another caller in every method", async () => {
    const { taskId } = await ada.tasks.call("timer", { timer_name: "task", seconds: LONG_SECONDS });
    await expect(bob.tasks.get(taskId)).rejects.toMatchObject({ code: -32602 });
    await expect(bob.tasks.update(taskId, {})).rejects.toMatchObject({ code: -32602 });
    await expect(bob.tasks.cancel(taskId)).rejects.toMatchObject({ code: -32602 });
    expect((await ada.tasks.get(taskId)).status).toBe("working");
  });

  test("of the same name has a different id for each caller, and none can be derived from the other", async () => {
    const args = { timer_name: "same task", seconds: LONG_SECONDS };
    const hers = await ada.tasks.call("timer", args);
    const his = await bob.tasks.call("timer", args);
    expect(hers.taskId).not.toBe(his.taskId);
    const [name, herSeal] = hers.taskId.split(".");
    const [, hisSeal] = his.taskId.split(".");
    const { key } = await callerOf("ada");
    const keyed = Buffer.from(`${key}timer_same task`).toString("base64url");
    for (const forged of [hers.taskId, `${keyed}.${hisSeal}`, `${keyed}.${herSeal}`, `${name}.`]) {
      await expect(bob.tasks.get(forged)).rejects.toMatchObject({ code: -32602 });
      await expect(bob.tasks.cancel(forged)).rejects.toMatchObject({ code: -32602 });
    }
    await bob.tasks.cancel(his.taskId);
    expect((await ada.tasks.get(hers.taskId)).status).toBe("working");
  });

  test("of another caller cannot be subscribed to", async () => {
    const hers = await ada.tasks.call("confirm_delete", { filename: "hers" });
    const his = await bob.tasks.call("confirm_delete", { filename: "his" });
    await using subscription = await subscribe(stack.url, [hers.taskId, his.taskId], bob.token);
    await subscription.told(his.taskId, "input_required");
    expect(subscription.messages[0]?.params.notifications.taskIds).toEqual([his.taskId]);
    const { inputRequests } = await ada.tasks.reaches(hers.taskId, "input_required");
    const [key = ""] = Object.keys(inputRequests);
    await ada.tasks.update(hers.taskId, { [key]: accept({ confirm: true }) });
    await ada.tasks.reaches(hers.taskId, "completed");
    await bob.tasks.update(his.taskId, { [key]: accept({ confirm: true }) });
    await subscription.told(his.taskId, "completed");
    await subscription.ended;
    expect(subscription.tasks(hers.taskId)).toEqual([]);
  });
});

describe("list_jobs", () => {
  const names = (page: { jobs: { job_name: string }[] }) => page.jobs.map(({ job_name }) => job_name);

  test("lists each caller's own jobs, newest first, page by page", async () => {
    for (const [i, caller] of [ada, bob, ada, bob, ada].entries()) {
      await caller.call("set_timer", { timer_name: `listed ${i}`, seconds: LONG_SECONDS });
    }
    const first = await ada.call("list_jobs", { kind: "timer", limit: 2 });
    expect(names(first)).toEqual(["timer_listed 4", "timer_listed 2"]);
    const second = await ada.call("list_jobs", { kind: "timer", limit: 1, cursor: first.next_cursor });
    expect(names(second)).toEqual(["timer_listed 0"]);
    // A cursor gives a position, and the list is always the caller's own.
    for (const cursor of [first.next_cursor, `${Date.now()} timer_listed 4`, "9 timer_", "999999999999999 z"]) {
      const his = await bob.call("list_jobs", { limit: 100, cursor });
      for (const name of names(his)) expect(name).not.toMatch(/listed [024]/);
    }
    await expect(bob.call("list_jobs", { cursor: "{}" })).rejects.toThrow(/cursor: /);
  });

  test("filters by status and kind", async () => {
    await ada.call("set_timer", { timer_name: "cancelled", seconds: LONG_SECONDS });
    await ada.call("cancel_job", { job_names: ["timer_cancelled"] });
    const month = await ada.call("weather_data", { latitude: 47.6, longitude: -122.3, year: 2015, month: 7 });
    const cancelled = await ada.call("list_jobs", { status: "cancelled", kind: "timer" });
    expect(names(cancelled)).toContain("timer_cancelled");
    expect(cancelled.jobs.map(({ status }: { status: string }) => status)).not.toContain("running");
    expect(names(await ada.call("list_jobs", { kind: "weather_data", status: "complete" }))).toEqual([month.job_name]);
    expect(names(await bob.call("list_jobs", { kind: "weather_data" }))).toEqual([]);
  });
});

test("two callers who use every tool concurrently with the same names each have their own jobs", async () => {
  const live = async (caller: TestCaller, seconds: number) => {
    const month = { latitude: 47.6, longitude: -122.3, year: 2013, month: 6 };
    const timer_name = "at once";
    const started = await Promise.all([
      caller.call("set_timer", { timer_name, seconds }),
      caller.call("start_gathering", month),
      caller.call("timer", { timer_name: "short", seconds: 1 }),
      caller.call("weather_data", { ...month, month: 7 }),
      caller.tasks.call("timer", { timer_name: "as a task", seconds: 1 }),
      caller.tasks.call("confirm_delete", { filename: "at once" }),
    ]);
    const [timer, gathering, , , task, question] = started;
    const { inputRequests } = await caller.tasks.reaches(question.taskId, "input_required");
    const confirm = accept({ confirm: caller === ada });
    await caller.tasks.update(question.taskId, { [Object.keys(inputRequests)[0] ?? ""]: confirm });
    const { results } = await caller.call("await_result", { job_names: [gathering.job_name] });
    const [answered] = await Promise.all([
      caller.tasks.reaches(question.taskId, "completed"),
      caller.tasks.reaches(task.taskId, "completed"),
    ]);
    return { timer, results, answer: answered.result.structuredContent.result };
  };
  const [hers, his] = await Promise.all([live(ada, 1_000), live(bob, 2_000)]);
  expect(Date.parse(his.timer.fires_at) - Date.parse(hers.timer.fires_at)).toBeGreaterThan(900_000);
  expect(hers.results).toEqual(his.results);
  expect([hers.answer, his.answer]).toEqual(["deleted at once", expect.not.stringMatching(/^deleted/)]);
  await until("both gatherings to have cost one request", () => stack.archive.control.count("2013-06") === 1);
});
