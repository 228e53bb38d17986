/** How many jobs a caller may start: exactly as many as is said, for three requests at most, and anew when they end. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/program.ts";
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
  options: { workers?: number; env?: Record<string, string>; group?: Stack; objects?: string } = {},
): Promise<Stack> =>
  startStack({
    resonate,
    workers: options.workers ?? 0,
    env: options.env ?? {},
    ...(options.objects !== undefined && { objects: options.objects }),
    bindings: {
      ...bearerBindings(TOKENS),
      ...bindings,
      ...(options.group && { RESONATE_GROUP: options.group.group, RESONATE_NAMESPACE: options.group.namespace }),
    },
  });

/** In seconds. Of those that take up to 30 days: such a period hardly ends meanwhile. */
const LONG = 20 * 86_400;
const timer = (caller: TestCaller, name: string, seconds = LONG) =>
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

/** After how many links edges begin anew; more take a while. */
const LINKS = (process.env.QUOTA_LINKS ?? "4,64").split(",").map(Number);

test("an edge that has just begun knows where the ledger ends, and takes three requests at most", {
  timeout: 600_000,
}, async () => {
  const objects = await mkdtemp(join(tmpdir(), "objects-"));
  await using gate = await startGate(resonate.url);
  await using stack = await serve({ MAX_JOBS: "4000", RESONATE_URL: gate.url }, { objects });
  const ada = callerAt(stack.url, TOKENS.ada);
  const start = async (name: string) => {
    const before = gate.calls.length;
    expect(await timer(ada, name)).toBe(true);
    return costSince(gate, before);
  };
  let links = 0;
  const costs: number[] = [];
  for (const most of LINKS) {
    while (links < most) expect(await start(`before${links++}`)).toBe(1);
    // How far it is stands in the listener's storage within a second.
    await sleep(1_500);
    await stack.edge.kill();
    await stack.edge.start();
    costs.push(await start(`fresh${links++}`));
  }
  expect(costs).toEqual(LINKS.map(() => 1));
  await stack.edge.kill();
  await rm(objects, { recursive: true });
  await mkdir(objects);
  // What has been forgotten is looked for.
  await stack.edge.start();
  expect(await start("forgotten")).toBeLessThanOrEqual(6 + 2 * Math.ceil(Math.log2(links)));
  expect(await start("known")).toBe(1);
  await stack.edge.end();
  await rm(objects, { recursive: true });
});

test("as many at once as is said, when all come at once, for a request each at most", async () => {
  await using gate = await startGate(resonate.url);
  await using stack = await serve({ MAX_JOBS: "40", RESONATE_URL: gate.url });
  const ada = callerAt(stack.url, TOKENS.ada);
  const started = await Promise.all(Array.from({ length: 70 }, (_, i) => timer(ada, `c${i}`)));
  expect(started.filter(Boolean).length).toBe(40);
  expect(costSince(gate, 0)).toBeLessThanOrEqual(80);
});

test("a place comes back when its job ends before its time, by itself or cancelled", { timeout: 180_000 }, async () => {
  // Within one hour: from the next one on all would be there again.
  const left = 3_600_000 - (Date.now() % 3_600_000);
  if (left < 60_000) await sleep(left);
  const HOUR = 600;
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
  for (let i = 0; i < 10; i++) expect(await timer(ada, `long${i}`, HOUR)).toBe(true);
  expect(await timer(ada, "over", HOUR)).toBe(false);
  await ada.call("await_result", { job_names: short.map((name) => `timer_${name}`), timeout_seconds: 30 });
  const again = async () => {
    for (let i = 0; i < 10; i++) if (!(await timer(ada, `again${i}`, HOUR))) return undefined;
    return true;
  };
  await until("places to come back", again);
  expect(await timer(ada, "over", HOUR)).toBe(false);

  // Cancelled once, however often.
  const cancelled = { job_names: ["timer_long0", "timer_long1"] };
  await ada.call("cancel_job", cancelled);
  await Promise.all([ada.call("cancel_job", cancelled), ada.call("cancel_job", cancelled)]);
  expect(await timer(ada, "x0", HOUR)).toBe(true);
  expect(await timer(ada, "x1", HOUR)).toBe(true);
  expect(await timer(ada, "x2", HOUR)).toBe(false);

  // In use and given back over and over, a start costs the same.
  const bob = callerAt(stack.url, TOKENS.ada);
  const costs: number[] = [];
  for (let i = 0; i < 3 * most; i++) {
    const before = gate.calls.length;
    expect(await timer(bob, `round${i}`, HOUR)).toBe(true);
    costs.push(costSince(gate, before));
    await bob.call("cancel_job", { job_names: [`timer_round${i}`] });
  }
  expect(Math.max(...costs)).toBeLessThanOrEqual(2);
});

test("a range takes the places of its months in one request, and gives them back in a few", {
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
    expect(costSince(gate, before)).toBe(1);
    await ada.tasks.reaches(taskId, "completed", 60_000);
    // One that gives them back, and one for each 4 per cent of all places, which are 24.
    const all = 1 + 1 + Math.floor(months / 24);
    await until("its places to be given back", () => (costSince(gate, before) >= all ? true : undefined));
    expect(costSince(gate, before)).toBeLessThanOrEqual(all + 1);
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
