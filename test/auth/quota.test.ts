/**
 * The quota of jobs that a caller may start: it is exact, costs one call per start, and is given back when jobs end. The tests
 * share one edge with two isolates, and each has its own caller. Tests that need a worker start it, and tests that end the edge
 * come last.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { until } from "../../testing/stack/program.ts";
import { call, send } from "../limits/support.ts";
import type { Gate } from "../support/gate.ts";
import { type GatedStack, type Stack, startGatedStack, startStack } from "../support/stack.ts";
import { bearer, bearerBindings, callerAt, type TestCaller } from "./support.ts";

const MAX_JOBS = 20;
const NAMES = ["range", "turns", "at-once", "ends", "months", "restarts", "looks"] as const;
const TOKENS = Object.fromEntries(NAMES.map((name) => [name, `static-token-of-${name}`]));

let gate: Gate;
let stack: GatedStack;
let objects: string;
beforeAll(async () => {
  objects = await mkdtemp(join(tmpdir(), "objects-"));
  const bindings = { ...bearerBindings(TOKENS), MAX_JOBS: String(MAX_JOBS) };
  stack = await startGatedStack({ workers: 0, bindings, beside: {}, objects });
  gate = stack.gate;
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(objects, { recursive: true, force: true });
});

const serve = (bindings: Record<string, string>): Promise<Stack> =>
  startStack({ resonate: stack.resonate, workers: 0, bindings: { ...bearerBindings(TOKENS), ...bindings } });

/** The caller of this name, at each of the two isolates. */
const isolates = (name: (typeof NAMES)[number]) =>
  [stack.url, stack.beside].map((url) => callerAt(url, TOKENS[name] ?? "")) as [TestCaller, TestCaller];

/** Seconds of a job in the 30-day period, which is unlikely to end during a test. */
const LONG = 20 * 86_400;
const timer = (caller: TestCaller, name: string, seconds = LONG) =>
  caller.call("set_timer", { timer_name: name, seconds }).then(
    () => true,
    (error: Error) => {
      expect(error.message).toMatch(/a caller may start \d+ jobs that take up to/);
      return false;
    },
  );

/** Waits for the next hour if this one is nearly over, since a new hour has a new quota. */
async function inOneHour(): Promise<void> {
  const left = 3_600_000 - (Date.now() % 3_600_000);
  if (left < 60_000) await sleep(left);
}
/** Seconds of a job in the one-hour period. */
const SHORT = 600;

const listed = async (caller: TestCaller): Promise<string[]> =>
  (await caller.call("list_jobs", { limit: 100 })).jobs.map(({ job_name }: { job_name: string }) => job_name);

/** How many calls the gate has seen since it had seen `since`. */
const requests = ({ calls }: Gate, since: number) => calls.length - since;

test("a range that counts as more jobs than are left is refused", async () => {
  const [ada] = isolates("range");
  const range = (latitude: number, from: string, to: string) =>
    ada.tasks.call("weather_range", { latitude, longitude: 1, from, to, confirm: true });
  const [refused, first, second, third] = [
    await range(1, "2010-01", "2011-09"),
    await range(2, "2010-01", "2011-02"),
    await range(3, "2010-01", "2010-07"),
    await range(4, "2010-01", "2010-06"),
  ];
  expect(refused).toMatchObject({ isError: true });
  expect(refused.content[0].text).toMatch(
    /^Nothing was done: this counts as 21 jobs, and a caller may start 20 jobs that take up to 30 days in 30 days\. Trying again does not help\. Ask for at most 20 at once\.$/,
  );
  expect(first.status).toBe("working");
  expect(second.content[0].text).toMatch(/this counts as 7 jobs.*Try again in \d+ minutes/);
  expect(third.status).toBe("working");
  expect(await timer(ada, "one", 5 * 86_400)).toBe(false);
  await ada.tasks.cancel(third.taskId);
  expect((await range(3, "2010-01", "2010-06")).status).toBe("working");
});

test("at two isolates together a caller can start exactly its quota, for one call each", async () => {
  const callers = isolates("turns");
  const costs: number[] = [];
  for (let i = 0; i < MAX_JOBS; i++) {
    const before = gate.calls.length;
    expect(await timer(callers[i % 2] as TestCaller, `t${i}`)).toBe(true);
    costs.push(requests(gate, before));
  }
  expect(costs[0]).toBeLessThanOrEqual(4);
  expect(Math.max(...costs.slice(1))).toBe(1);
  const more = await Promise.all(Array.from({ length: 20 }, (_, i) => timer(callers[i % 2] as TestCaller, `m${i}`)));
  expect(more.filter(Boolean)).toEqual([]);
  // An existing job is still found.
  expect(await timer(callers[0], "t0")).toBe(true);
  expect(await timer(callers[1], "t1")).toBe(true);
});

test("concurrent starts get exactly the quota", async () => {
  const callers = isolates("at-once");
  const starts = Array.from({ length: 30 }, (_, i) => timer(callers[i % 2] as TestCaller, `c${i}`));
  expect((await Promise.all(starts)).filter(Boolean).length).toBe(MAX_JOBS);
});

test("a reservation comes back when its job ends before its time, by itself or cancelled", async () => {
  await inOneHour();
  await stack.addWorker();
  const [ada] = isolates("ends");
  const short = Array.from({ length: 10 }, (_, i) => `short${i}`);
  for (const name of short) expect(await timer(ada, name, 10)).toBe(true);
  for (let i = 0; i < 10; i++) expect(await timer(ada, `long${i}`, SHORT)).toBe(true);
  expect(await timer(ada, "over", SHORT)).toBe(false);
  await ada.call("await_result", { job_names: short.map((name) => `timer_${name}`), timeout_seconds: 30 });
  const again = async () => {
    for (let i = 0; i < 10; i++) if (!(await timer(ada, `again${i}`, SHORT))) return undefined;
    return true;
  };
  await until("reservations to come back", again);
  expect(await timer(ada, "over", SHORT)).toBe(false);

  // Repeated cancels of a job give back one reservation.
  const cancelled = { job_names: ["timer_long0", "timer_long1"] };
  await ada.call("cancel_job", cancelled);
  await Promise.all([ada.call("cancel_job", cancelled), ada.call("cancel_job", cancelled)]);
  expect(await timer(ada, "x0", SHORT)).toBe(true);
  expect(await timer(ada, "x1", SHORT)).toBe(true);
  expect(await timer(ada, "x2", SHORT)).toBe(false);

  // A start costs the same after many reservations and returns.
  await ada.call("cancel_job", { job_names: ["timer_x0", "timer_x1"] });
  const costs: number[] = [];
  for (let i = 0; i < 2 * MAX_JOBS; i++) {
    const before = gate.calls.length;
    expect(await timer(ada, `round${i}`, SHORT)).toBe(true);
    costs.push(gate.calls.slice(before).filter(({ id }) => !id?.includes(":")).length);
    await ada.call("cancel_job", { job_names: [`timer_round${i}`] });
  }
  expect(costs.toSorted((a, b) => a - b)[Math.floor(costs.length / 2)]).toBe(1);
});

test("a range counts as its months, which take no reservations of their own", async () => {
  const [ada] = isolates("months");
  for (const latitude of [47.6, 47.7]) {
    const range = { latitude, longitude: -122.3, from: "2012-01", to: "2013-08", confirm: true };
    const { taskId } = await ada.tasks.call("weather_range", range);
    await ada.tasks.reaches(taskId, "completed", 60_000);
    // The next range needs the whole quota, so the reservation must have come back.
  }
});

test("a reservation comes back if the edge died before it created the job, or if nobody reported the job's end", async () => {
  await inOneHour();
  await using stack = await serve({ MAX_JOBS: "2", RESONATE_URL: gate.url });
  const ada = callerAt(stack.url, TOKENS.restarts ?? "");
  expect(await timer(ada, "first", SHORT)).toBe(true);
  const held = gate.hold("promise.create");
  const died = timer(ada, "died", SHORT).catch(() => "without an answer");
  await held;
  await stack.edge.kill();
  expect(await died).toBe("without an answer");
  gate.release("promise.create");
  await stack.edge.start();
  // For a while the edge could still create the job, so the reservation stays.
  expect(await timer(ada, "second", SHORT)).toBe(false);
  await until("the reservation to come back", () => timer(ada, "second", SHORT), 60_000);
  expect(await timer(ada, "third", SHORT)).toBe(false);
  expect((await listed(ada)).sort()).toEqual(["timer_first", "timer_second"]);

  const { key } = await callerOf("restarts");
  await stack.resonate.call("promise.settle", {
    id: `${stack.namespace}${key}timer_first`,
    state: "rejected",
    value: {},
  });
  expect(await timer(ada, "third", SHORT)).toBe(true);
  expect(await timer(ada, "fourth", SHORT)).toBe(false);
});

test("a refused start is charged for the jobs that it made the edge read, so its repetition is limited", async () => {
  const most = 40;
  const limits = { MAX_JOBS: String(most), RATE_LIMIT: "200" };
  await using limited = await serve({ ...limits, RESONATE_URL: gate.url });
  const caller = callerAt(limited.url, TOKENS.looks ?? "");
  await Promise.all(Array.from({ length: most }, (_, n) => timer(caller, `l${n}`)));
  const before = gate.calls.length;
  const headers = bearer(caller.token);
  const refused = async (n: number) => {
    const body = call("set_timer", { timer_name: `m${n}`, seconds: LONG });
    return (await send(limited.url, { headers, body })).status;
  };
  let asked = 0;
  while ((await refused(asked)) === 200) asked += 1;
  expect(asked).toBeGreaterThan(5);
  expect(asked).toBeLessThan(30);
  // One unit of the rate limit allows three calls.
  expect(requests(gate, before)).toBeLessThan(3 * 200 + most + 10);
});

test("without the CALLER binding an edge says once what it lacks, jobs start, and a search lists them", async () => {
  await using limited = await serve({ MAX_JOBS: "10", CALLER: "" });
  const ada = callerAt(limited.url, TOKENS.restarts ?? "");
  for (const name of ["searched for", "found"]) expect(await timer(ada, name)).toBe(true);
  expect((await listed(ada)).sort()).toEqual(["timer_found", "timer_searched for"]);
  expect(limited.edge.process.output().match(/binds no CALLER/g)).toHaveLength(1);
});

test("an edge that restarts, with or without its objects' storage, still counts and lists the started jobs", async () => {
  const [ada] = isolates("restarts");
  const names = Array.from({ length: MAX_JOBS - 2 }, (_, i) => `s${i}`);
  for (const name of names) expect(await timer(ada, name)).toBe(true);
  await stack.edge.kill();
  await stack.edge.start();
  const before = gate.calls.length;
  expect(await timer(ada, "kept")).toBe(true);
  expect(requests(gate, before)).toBe(1);

  await stack.edge.kill();
  await rm(objects, { recursive: true });
  await mkdir(objects);
  await stack.edge.start();
  expect(await timer(ada, "lost")).toBe(true);
  expect(await timer(ada, "one more")).toBe(false);
  expect((await listed(ada)).sort()).toEqual([...names, "kept", "lost"].map((name) => `timer_${name}`).sort());
});
