import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { CLIENTS, client2025, currentClient, type McpClient } from "../support/clients.ts";
import { monthsOfItsOwn } from "../support/months.ts";
import { type Stack, startStack } from "../support/stack.ts";

vi.setConfig({ maxConcurrency: 40 });

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const nextMonth = monthsOfItsOwn();
const YEAR = 365 * 24 * 60 * 60;

describe.concurrent.each(CLIENTS)("a timer, $kind", ({ kind, connect }) => {
  let client: McpClient;
  let other: McpClient;
  beforeAll(async () => {
    const otherKind = kind === currentClient.kind ? client2025 : currentClient;
    [client, other] = await Promise.all([connect(stack.url), otherKind.connect(stack.url)]);
  });
  afterAll(() => Promise.all([client?.close(), other?.close()]));

  const set = async (timer_name: unknown, seconds: number, by = client) => {
    const { isError, content, text } = await by.callTool("set_timer", { timer_name, seconds });
    if (isError) throw new Error(text);
    return content;
  };
  const status = async (timer_name: unknown) => (await client.callTool("get_timer_status", { timer_name })).content;

  test("that is set again, by any client, stays unchanged", async () => {
    const timer_name = `twice ${kind}`;
    const first = await set(timer_name, 3_600);
    expect(first).not.toHaveProperty("note");
    for (const by of [client, other]) {
      const note = "A timer of this name was already set and is unchanged.";
      expect(await set(timer_name, 5, by)).toEqual({ ...first, note });
    }
    expect(await status(timer_name)).toMatchObject({ status: "running", fires_at: first.fires_at });
  });

  test("set by 50 callers at once is one timer", async () => {
    const timer_name = `crowd ${kind}`;
    const calls = Array.from({ length: 50 }, (_, i) => set(timer_name, 3_600 + i, i % 2 ? client : other));
    const timers = await Promise.all(calls);
    expect(new Set(timers.map(({ promise_id, fires_at }) => `${promise_id} ${fires_at}`)).size).toBe(1);
    expect(timers.filter(({ note }) => note === undefined).length).toBeGreaterThanOrEqual(1);
  });

  test("reports fewer remaining seconds each time, and 0 once it has fired", async () => {
    const timer_name = `falling ${kind}`;
    const { promise_id, fires_at } = await set(timer_name, 5.5);
    const seen: number[] = [];
    await until("the timer to fire", async () => {
      const now = await status(timer_name);
      expect(now.fires_at).toBe(fires_at);
      seen.push(now.remaining_seconds);
      return now.status === "complete";
    });
    expect(seen).toEqual(seen.toSorted((a, b) => b - a));
    expect(new Set(seen).size).toBeGreaterThanOrEqual(2);
    expect(seen[0]).toBeLessThanOrEqual(6);
    expect(seen.at(-1)).toBe(0);
    expect(await set(timer_name, 2)).toEqual({
      job_name: promise_id,
      promise_id,
      timer_name,
      status: "complete",
      fires_at,
      note: expect.stringContaining("already fired"),
    });
  });

  test("is never early, among many", async () => {
    const seconds = Array.from({ length: 20 }, (_, i) => 1 + i / 20);
    const before = Date.now();
    const timers = await Promise.all(seconds.map((s, i) => set(`${i} of many, ${kind}`, s)));
    const job_names = timers.map(({ promise_id }) => promise_id);
    const { content } = await client.callTool("await_result", { job_names });
    expect(content).toEqual({
      results: Object.fromEntries(job_names.map((name) => [name, "complete"])),
      errors: {},
      running: [],
    });
    const { statuses } = (await client.callTool("probe_status", { job_names })).content;
    for (const [i, { finished_at }] of statuses.entries()) {
      expect(Date.parse(timers[i].fires_at)).toBeGreaterThanOrEqual(before + (seconds[i] ?? 0) * 1_000);
      expect(Date.parse(finished_at)).toBeGreaterThanOrEqual(Date.parse(timers[i].fires_at));
    }
  });

  test.each([
    ["spaces", "a cup of tea"],
    ["accents", "thé à la menthe"],
    ["another script", "お茶の時間"],
    ["emoji", "🍵🫖 👩‍🚀"],
    ["marks", `50 % "off" <b>/?#&=\\ {'x'}`],
    ["100 characters", "x".repeat(100)],
    ["a dot and a lookalike of a colon", "tea.0：1"],
    ["the form of a namespace", "a/b"],
    ["the form of JSON", '["tea"]'],
    ["the name of an inherited property", "__proto__"],
  ])("may have a name with %s", async (_what, name) => {
    const timer_name = `${name}${kind === currentClient.kind ? "" : " "}`.slice(0, 100); // the space is trimmed
    const { promise_id } = await set(timer_name, 1);
    expect(promise_id).toBe(`timer_${name}`);
    const { content } = await client.callTool("await_result", { job_names: [promise_id] });
    expect(Object.entries(content.results)).toEqual([[promise_id, "complete"]]);
    expect(await status(name)).toMatchObject({ timer_name: name, status: "complete" });
  });

  test("has the same name in every Unicode normalization", async () => {
    const first = await set("caf\u00e9", 3_600);
    expect(await set("cafe\u0301", 3_600)).toMatchObject({ promise_id: first.promise_id, fires_at: first.fires_at });
    expect(await status("cafe\u0301")).toMatchObject({ status: "running", fires_at: first.fires_at });
  });

  test("named like a gathering does not take the gathering's name", async () => {
    const { args, job } = nextMonth();
    const { promise_id } = await set(job, 3_600);
    expect(promise_id).toBe(`timer_${job}`);
    expect((await client.callTool("probe_status", { job_names: job })).content.statuses).toMatchObject([
      { status: "not_found" },
    ]);
    expect((await client.callTool("weather_data", args)).content).toMatchObject({ job_name: job, status: "complete" });
    expect(await status(job)).toMatchObject({ status: "running" });
  });

  test("that was cancelled reports so, and can be set again", async () => {
    const timer_name = `cancelled ${kind}`;
    const { promise_id, fires_at } = await set(timer_name, 3_600);
    const { content } = await client.callTool("cancel_job", { job_names: [promise_id] });
    expect(content).toEqual({ cancelled: [promise_id], already_finished: [], not_found: [] });
    expect(await status(timer_name)).toEqual({ timer_name, status: "cancelled", fires_at, remaining_seconds: 0 });
    const again = await set(timer_name, 1);
    expect(again).toMatchObject({
      promise_id: `${promise_id}~2`,
      status: "running",
      note: expect.stringMatching(/^Attempt 2/),
    });
    expect(await status(timer_name)).toMatchObject({ fires_at: again.fires_at });
    const { errors, results } = (await client.callTool("await_result", { job_names: [promise_id, again.promise_id] }))
      .content;
    expect(errors).toEqual({ [promise_id]: expect.stringMatching(/^cancelled: /) });
    expect(results).toEqual({ [again.promise_id]: "complete" });
    expect(await status(timer_name)).toMatchObject({ status: "complete", fires_at: again.fires_at });
  });

  test("that was cancelled and set again: calls for the first report the second, and a late cancel spares it", async () => {
    const timer_name = `renewed ${kind}`;
    const { promise_id: first } = await set(timer_name, 3_600);
    await client.callTool("cancel_job", { job_names: [first] });
    const { promise_id: second } = await set(timer_name, 3_600);
    const newer = { job_name: second, status: "running" };
    const { statuses } = (await client.callTool("probe_status", { job_names: [first] })).content;
    expect(statuses).toMatchObject([{ status: "cancelled", newer }]);
    const { errors } = (await client.callTool("await_result", { job_names: [first] })).content;
    expect(errors[first]).toContain(`A newer attempt, ${second}, is running.`);
    // A late repetition of the cancel does not end the newer attempt, but names it.
    const { content } = await client.callTool("cancel_job", { job_names: [first] });
    expect(content).toMatchObject({ cancelled: [first], newer: { [first]: newer } });
    expect(await status(timer_name)).toMatchObject({ status: "running" });
  });

  test("that nobody has set is not found", async () => {
    expect(await status(`unheard of, ${kind}`)).toEqual({ timer_name: `unheard of, ${kind}`, status: "not_found" });
  });

  test("of a year has a promise that lives longer than a year", async () => {
    const { promise_id, fires_at } = await set(`year ${kind}`, YEAR);
    const remaining = (await status(`year ${kind}`)).remaining_seconds;
    expect(remaining).toBeLessThanOrEqual(YEAR);
    expect(remaining).toBeGreaterThan(YEAR - 30);
    const promise = await stack.resonate.get(stack.namespace + promise_id);
    expect(promise?.timeoutAt).toBeGreaterThan(Date.parse(fires_at));
  });
});

test("a gathering has an hour, and a minute for its clean-up", async () => {
  await using client = await currentClient.connect(stack.url);
  const { args, job } = nextMonth();
  const before = Date.now();
  await client.callTool("weather_data", args);
  const promise = await stack.resonate.get(stack.namespace + job);
  const most = 3_600_000 + 60_000;
  expect(promise?.timeoutAt).toBeGreaterThanOrEqual(before + most);
  expect(promise?.timeoutAt).toBeLessThanOrEqual(Date.now() + most);
});
