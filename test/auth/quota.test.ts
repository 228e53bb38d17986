/** How many jobs a caller may start: exactly as many as is said, for a bounded number of requests, and anew when they end. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../infra/testing/process.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { bearerBindings, callerAt, type TestCaller } from "./support.ts";

const TOKENS = { ada: "token-of-ada" };

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const serve = (
  bindings: Record<string, string>,
  options: { workers?: number; env?: Record<string, string>; group?: Stack } = {},
): Promise<Stack> =>
  startStack({
    resonate,
    workers: options.workers ?? 0,
    env: options.env ?? {},
    bindings: {
      ...bearerBindings(TOKENS),
      ...bindings,
      ...(options.group && { RESONATE_GROUP: options.group.group, RESONATE_NAMESPACE: options.group.namespace }),
    },
  });

const HOUR = 600;
const timer = (caller: TestCaller, name: string, seconds = HOUR) =>
  caller.call("set_timer", { timer_name: name, seconds }).then(
    () => true,
    (error: Error) => {
      expect(error.message).toMatch(/a caller may start \d+ jobs that take up to/);
      return false;
    },
  );

/** The requests for places: those for the job itself and for the caller's list are beside them. */
const costSince = ({ calls }: Gate, before: number) =>
  calls.slice(before).filter(({ id }) => id?.includes("quota:")).length;

test("by two edges a caller starts as many as is said, for three requests each at most", {
  timeout: 120_000,
}, async () => {
  const most = 200;
  await using gate = await startGate(resonate.url);
  await using first = await serve({ MAX_JOBS: String(most), RESONATE_URL: gate.url });
  await using second = await serve({ MAX_JOBS: String(most), RESONATE_URL: gate.url }, { group: first });
  const callers = [first, second].map(({ url }) => callerAt(url, TOKENS.ada)) as [TestCaller, TestCaller];
  const costs: number[] = [];
  let started = 0;
  for (let i = 0; ; i++) {
    const before = gate.calls.length;
    const isStarted = await timer(callers[i % 2] as TestCaller, `t${i}`);
    if (!isStarted) break;
    started += 1;
    costs.push(costSince(gate, before));
  }
  expect(started).toBeGreaterThanOrEqual(0.95 * most);
  // Whoever goes on asking, at either, and however many at once, does not get more.
  const more = await Promise.all(Array.from({ length: 100 }, (_, i) => timer(callers[i % 2] as TestCaller, `m${i}`)));
  expect(started + more.filter(Boolean).length).toBeLessThanOrEqual(most);
  // Each time they come upon what the other one has just taken.
  expect(Math.max(...costs)).toBeLessThanOrEqual(3);
  expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeLessThanOrEqual(2.1 * costs.length);
  // One that is there is found all the same.
  expect(await timer(callers[0], "t0")).toBe(true);
  expect(await timer(callers[1], "t1")).toBe(true);
});

test("an edge that has just started finds its way, and leaves word of it for the next", async () => {
  await using gate = await startGate(resonate.url);
  await using stack = await serve({ MAX_JOBS: "1000", RESONATE_URL: gate.url });
  const ada = callerAt(stack.url, TOKENS.ada);
  // Of those that take up to a day: a slice of the period is four hours then, and hardly ends meanwhile.
  const start = async (name: string) => {
    const before = gate.calls.length;
    expect(await timer(ada, name, 20 * 3_600)).toBe(true);
    return costSince(gate, before);
  };
  for (let i = 0; i < 20; i++) expect(await start(`before${i}`)).toBeLessThanOrEqual(1);
  const costs: number[] = [];
  for (let i = 0; i < 3; i++) {
    await stack.edge.kill();
    await stack.edge.start();
    costs.push(await start(`fresh${i}`));
  }
  // Whoever came first in the slice knew nothing to tell, so that the first of these has to look.
  expect(costs[0]).toBeLessThanOrEqual(16);
  expect(Math.max(...costs.slice(1))).toBeLessThanOrEqual(3);
});

test("as many at once as is said, when all come at once, for a request each at most", async () => {
  await using gate = await startGate(resonate.url);
  await using stack = await serve({ MAX_JOBS: "40", RESONATE_URL: gate.url });
  const ada = callerAt(stack.url, TOKENS.ada);
  const started = await Promise.all(Array.from({ length: 70 }, (_, i) => timer(ada, `c${i}`)));
  expect(started.filter(Boolean).length).toBe(40);
  expect(costSince(gate, 0)).toBeLessThanOrEqual(80);
});

test("a place comes back when its job ends before its time, by itself or cancelled", { timeout: 90_000 }, async () => {
  const most = 20;
  await using gate = await startGate(resonate.url);
  await using stack = await serve({ MAX_JOBS: String(most), RESONATE_URL: gate.url }, { workers: 0 });
  await using worked = await startStack({
    resonate,
    workers: 1,
    bindings: { ...bearerBindings(TOKENS), MAX_JOBS: String(most) },
  });
  const ada = callerAt(worked.url, TOKENS.ada);
  const short = Array.from({ length: 10 }, (_, i) => `short${i}`);
  for (const name of short) expect(await timer(ada, name, 10)).toBe(true);
  for (let i = 0; i < 10; i++) expect(await timer(ada, `long${i}`)).toBe(true);
  expect(await timer(ada, "over")).toBe(false);
  await ada.call("await_result", { job_names: short.map((name) => `timer_${name}`), timeout_seconds: 30 });
  const again = async () => {
    for (let i = 0; i < 10; i++) if (!(await timer(ada, `again${i}`))) return undefined;
    return true;
  };
  await until("places to come back", again);
  expect(await timer(ada, "over")).toBe(false);

  // Cancelled once, however often.
  const cancelled = { job_names: ["timer_long0", "timer_long1"] };
  await ada.call("cancel_job", cancelled);
  await Promise.all([ada.call("cancel_job", cancelled), ada.call("cancel_job", cancelled)]);
  expect(await timer(ada, "x0")).toBe(true);
  expect(await timer(ada, "x1")).toBe(true);
  expect(await timer(ada, "x2")).toBe(false);

  // In use and given back over and over, a start costs the same.
  const bob = callerAt(stack.url, TOKENS.ada);
  const costs: number[] = [];
  for (let i = 0; i < 3 * most; i++) {
    const before = gate.calls.length;
    expect(await timer(bob, `round${i}`)).toBe(true);
    costs.push(costSince(gate, before));
    await bob.call("cancel_job", { job_names: [`timer_round${i}`] });
  }
  expect(Math.max(...costs)).toBeLessThanOrEqual(2);
});

test("a range takes the places of its months in two requests, and gives them back in one", {
  timeout: 120_000,
}, async () => {
  await using gate = await startGate(resonate.url);
  const RESONATE_URL = gate.url;
  await using stack = await serve({ MAX_JOBS: "600", RESONATE_URL }, { workers: 1, env: { RESONATE_URL } });
  const ada = callerAt(stack.url, TOKENS.ada);
  for (const [months, latitude, from, to] of [
    [36, 47.6, "2012-01", "2014-12"],
    // Most of them the archive does not have.
    [240, 47.7, "1996-01", "2015-12"],
  ] as const) {
    const before = gate.calls.length;
    const { taskId } = await ada.tasks.call("weather_range", { latitude, longitude: -122.3, from, to, confirm: true });
    expect(costSince(gate, before)).toBeLessThanOrEqual(2);
    await ada.tasks.reaches(taskId, "completed");
    await until("its places to be given back", () => {
      const gives = gate.calls.slice(before).filter(({ id }) => /quota:.*\.g\d+$/.test(id ?? ""));
      return gives.length > 0 ? true : undefined;
    });
    expect(costSince(gate, before)).toBeLessThanOrEqual(3);
    // That of the range is one of them: its months take none.
    const created = gate.calls.slice(before).filter(({ kind, id }) => kind === "promise.create" && !id?.includes(":"));
    expect(created.filter(({ id }) => /weather_data_/.test(id ?? "")).length).toBe(months);
  }
});

test("a range counts for its months", async () => {
  await using stack = await serve({ MAX_JOBS: "30" });
  const ada = callerAt(stack.url, TOKENS.ada);
  const range = (latitude: number, from: string, to: string) =>
    ada.tasks.call("weather_range", { latitude, longitude: 1, from, to, confirm: true });
  const [refused, first, second, third] = [
    await range(1, "2010-01", "2012-07"),
    await range(2, "2010-01", "2011-12"),
    await range(3, "2010-01", "2010-07"),
    await range(4, "2010-01", "2010-06"),
  ];
  expect(refused).toMatchObject({ isError: true });
  expect(refused.content[0].text).toMatch(
    /^Nothing was done: this counts as 31 jobs, and a caller may start 30 jobs that take up to 30 days in 30 days/,
  );
  expect(first.status).toBe("working");
  expect(second.content[0].text).toMatch(/this counts as 7 jobs/);
  expect(third.status).toBe("working");
  expect(await timer(ada, "one", 5 * 86_400)).toBe(false);
  await ada.tasks.cancel(third.taskId);
  expect((await range(3, "2010-01", "2010-06")).status).toBe("working");
});
