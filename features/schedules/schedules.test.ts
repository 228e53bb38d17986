/** Schedules with a Resonate server in this process: missed and overlapping firings. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { callerOf } from "../../core/author/caller.ts";
import type { Job } from "../../core/author/job.ts";
import { PausedJobs } from "../../core/jobs/paused-jobs.ts";
import { startJob } from "../../core/jobs/start.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { feedEntryId } from "../../core/resonate/ids.ts";
import { defineDurableTool } from "../../core/tools/job-tool.ts";
import type { Tool, ToolSchedule } from "../../core/tools/tool.ts";
import { Callers } from "../../functions/objects/callers.ts";
import { definitions } from "../../functions/objects/definitions.ts";
import { type OpenCallerObject, openCallerObject } from "../../test/support/caller-object.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { createStorage } from "../../test/support/object-storage.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { recordForEvents } from "../events/start.ts";
import { quota } from "../quota/start.ts";
import { type Schedule, schedule } from "./schedule.ts";

const CALLER = await callerOf("a", "a");
const KEY = CALLER.key;
const HOUR = 3_600_000;
const BEGAN = Date.parse("2026-11-23T12:00:00Z");

const report = defineDurableTool({
  name: "report",
  title: "Report",
  description: "Writes a report.",
  input: z.object({ of: z.string().describe("What.") }),
  id: ({ of }) => of,
  deadline: 24 * HOUR,
});

beforeEach(() => void vi.useFakeTimers({ now: BEGAN, toFake: ["Date"] }));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A deployment of one tool and some others, without callers. */
function begin(others: readonly Tool[] = []) {
  const jobs = [report.job as Job, schedule as Job];
  Object.assign(definitions, { jobs, tools: [report, ...others] });
  const sim = new Simulation({ now: () => Date.now() });
  const state = { isAway: false };
  vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
    if (state.isAway) return new Response("", { status: 503 });
    const { kind, data } = JSON.parse(String(init.body));
    if (kind === "promise.search") return Response.json({ kind, head: { status: 403 }, data: "not allowed" });
    // The simulation has the protocol of a standalone server, without the additions of the server that is brought along.
    if (kind === "promise.read") return Response.json({ kind, head: { status: 400 }, data: "unknown kind" });
    const { status, data: answer } = await sim.send(kind, data);
    return Response.json({ kind, head: { status }, data: answer });
  });
  const env = {
    RESONATE_URL: "http://resonate",
    AUTH_MODE: "bearer",
    BEARER_TOKENS: JSON.stringify([{ name: "a", sha256: "0".repeat(64) }]),
  };
  return { jobs, sim, state, env };
}

/** A caller with one schedule. */
async function deploy(change: Partial<Schedule>, maxJobs = 100, others: readonly Tool[] = []) {
  const { jobs, sim, state, env } = begin(others);
  const alarm = { at: 0 };
  const storage = { ...createStorage(), setAlarm: async (at: number) => void Object.assign(alarm, { at }) };
  let object = openCallerObject(storage, env);
  const endpoint = { url: "http://resonate", group: "workers", namespace: "" };
  const callers = new Callers({ idFromName: () => ({}), get: () => object }, "");
  const records = callers.records({ jobs: maxJobs, bytes: 0 });
  const features = [quota(records), recordForEvents(records, () => false)];
  const store = jobStore(endpoint, jobs, { records, features }).as(CALLER, "r");
  const base = { name: "s", tool: "report", arguments: { of: "x" }, missed: "skip", overlap: "skip" } as const;
  const spec: Schedule = { ...base, when: { every: 3_600, from: BEGAN }, ...change };
  await startJob(store, schedule as Job, spec, Date.now());
  await object.alarm();
  const listed = async () => {
    return (await object.list(KEY, { limit: 1_000 })).map(({ id }) => id.slice(KEY.length)).reverse();
  };
  return {
    sim,
    store,
    state,
    spec,
    alarm,
    /** Deploys again, with these callers blocked. */
    block(callers: string) {
      object = openCallerObject(storage, { ...env, BLOCKED_CALLERS: callers });
    },
    view: (job?: string) => object.view(KEY, job),
    /** Lets `count` minutes pass one by one. Each job ends within the minute in which it starts. */
    async minutes(count: number) {
      for (let n = 0; n < count; n++) {
        vi.advanceTimersByTime(60_000);
        await object.alarm();
        for (const id of sim.promises())
          if (/report_x@[^:]*$/.test(id) && sim.get(id)?.state === "pending") sim.settle(id, "resolved");
      }
    },
    /** Lets `hours` hours pass at once, then runs the alarm. */
    async pass(hours: number) {
      vi.setSystemTime(Date.now() + hours * HOUR);
      await object.alarm();
    },
    /** The hours at which jobs were fired. */
    fired: async () =>
      (await listed()).flatMap((name) => (name.startsWith("report_x@") ? [name.slice("report_x@202611".length)] : [])),
    end: (at: string) =>
      sim.send("promise.settle", { id: `${KEY}report_x@202611${at}`, state: "resolved", value: encodeValue("done") }),
    doing: async (name = "schedule_s") => {
      const record = sim.get(KEY + name);
      return record && (await store.feeds.newest(record)).entry?.message;
    },
  };
}

test("each firing is a job of its own", async () => {
  const { pass, fired, end, doing } = await deploy({});
  expect(await doing()).toBe("fires next 2026-11-23T13:00:00.000Z");
  await pass(1);
  await end("23T130000Z");
  await pass(1);
  expect(await fired()).toEqual(["23T130000Z", "23T140000Z"]);
  expect(await doing()).toBe(
    "fires next 2026-11-23T15:00:00.000Z; last: report_x@20261123T140000Z, report_x@20261123T130000Z",
  );
});

test("a caller sees when its schedule fires next and what its last firings started, and nothing after its end", async () => {
  const { pass, view, store } = await deploy({ overlap: "skip" });
  const first = { job_name: "schedule_s", next_at: "2026-11-23T13:00:00.000Z", last: [], isOfDefinition: false };
  const nobody = { subscriptions: [], listeners: [] };
  expect(await view()).toEqual({ ...nobody, schedules: [first] });
  await pass(1);
  await pass(1);
  const fired = "report_x@20261123T130000Z";
  const last = [
    { text: `20261123T140000Z skipped, as ${fired} still runs`, isJob: false },
    { text: fired, isJob: true },
  ];
  const second = { ...first, next_at: "2026-11-23T15:00:00.000Z", last };
  expect(await view()).toEqual({ ...nobody, schedules: [second] });
  expect(await view(fired)).toEqual({ ...nobody, schedules: [] });
  await store.cancel("schedule_s");
  await pass(1);
  expect(await view()).toEqual({ ...nobody, schedules: [] });
});

test("after a day of downtime the missed firings are skipped, or the last of them is made up", async () => {
  const skips = await deploy({ missed: "skip" });
  await skips.pass(24.5);
  expect([await skips.fired(), await skips.doing()]).toEqual([[], expect.stringContaining("20261124T120000Z missed")]);
  await skips.pass(0.5);
  expect(await skips.fired()).toEqual(["24T130000Z"]);
  vi.setSystemTime(BEGAN);
  const makesUp = await deploy({ missed: "last" });
  await makesUp.pass(24.5);
  expect(await makesUp.fired()).toEqual(["24T120000Z"]);
});

test("while the last job runs, the next firing is skipped, queued or started beside it", async () => {
  const skips = await deploy({ overlap: "skip" });
  await skips.pass(1);
  await skips.pass(1);
  expect([await skips.fired(), await skips.doing()]).toEqual([["23T130000Z"], expect.stringContaining("still runs")]);
  await skips.end("23T130000Z");
  await skips.pass(1);
  expect(await skips.fired()).toEqual(["23T130000Z", "23T150000Z"]);

  vi.setSystemTime(BEGAN);
  const queues = await deploy({ overlap: "queue" });
  await queues.pass(1);
  await queues.pass(1);
  expect(await queues.fired()).toEqual(["23T130000Z"]);
  await queues.end("23T130000Z");
  await queues.pass(0.01);
  expect(await queues.fired()).toEqual(["23T130000Z", "23T140000Z"]);

  vi.setSystemTime(BEGAN);
  const allows = await deploy({ overlap: "allow" });
  await allows.pass(1);
  await allows.pass(1);
  expect(await allows.fired()).toEqual(["23T130000Z", "23T140000Z"]);
});

test("an unavailable server delays a firing, and a cancelled or paused schedule does not fire", async () => {
  const { pass, fired, state, store, end } = await deploy({});
  state.isAway = true;
  await pass(1);
  state.isAway = false;
  await pass(0.01);
  expect(await fired()).toEqual(["23T130000Z"]);
  await end("23T130000Z");
  const paused = new PausedJobs(new ResonateClient({ url: "http://resonate" }), "");
  await paused.pause("schedule");
  await pass(0.99);
  expect(await fired()).toEqual(["23T130000Z"]);
  await paused.resume("schedule");
  await pass(1);
  expect(await fired()).toEqual(["23T130000Z", "23T150000Z"]);
  await store.cancel("schedule_s");
  await pass(1);
  expect(await fired()).toEqual(["23T130000Z", "23T150000Z"]);
});

test("a blocked caller's schedule starts nothing and says so, and fires again at its next time after the block", async () => {
  const { pass, fired, end, doing, block } = await deploy({ overlap: "queue" });
  await pass(1);
  await pass(1);
  block("b,a");
  // Not even the firing that was queued before the block is made up.
  await end("23T130000Z");
  await pass(0.01);
  await pass(0.99);
  const last =
    "20261123T150000Z not started: the caller is blocked, 20261123T140000Z not started: the caller is blocked";
  expect([await fired(), await doing()]).toEqual([["23T130000Z"], expect.stringContaining(last)]);
  block("b");
  await pass(0.01);
  expect(await fired()).toEqual(["23T130000Z"]);
  await pass(0.99);
  expect(await fired()).toEqual(["23T130000Z", "23T160000Z"]);
});

test("a queued firing waits while schedules are paused, and is made up when they go on", async () => {
  const { pass, fired, end } = await deploy({ overlap: "queue" });
  await pass(1);
  await pass(1);
  await end("23T130000Z");
  const paused = new PausedJobs(new ResonateClient({ url: "http://resonate" }), "");
  await paused.pause("schedule");
  await pass(0.01);
  await pass(1);
  expect(await fired()).toEqual(["23T130000Z"]);
  await paused.resume("schedule");
  await pass(0.02);
  expect(await fired()).toEqual(["23T130000Z", "23T140000Z"]);
});

test("of several firings that wait for the last job the newest is started, and the others are named as skipped", async () => {
  const { pass, fired, end, view } = await deploy({ overlap: "queue" });
  for (let n = 0; n < 4; n++) await pass(1);
  await end("23T130000Z");
  await pass(0.01);
  expect(await fired()).toEqual(["23T130000Z", "23T160000Z"]);
  const shown = await view();
  expect(shown.schedules[0]?.last.map(({ text }) => text)).toEqual([
    "report_x@20261123T160000Z",
    "20261123T150000Z skipped, as a later one is due",
    "20261123T140000Z skipped, as a later one is due",
    "report_x@20261123T130000Z",
  ]);
});

test.each([
  ["a one-time firing", { when: { at: new Date(BEGAN + HOUR).toISOString() } }],
  ['with missed: "last" the newest firing', { missed: "last" }],
] as const)("%s within a pause of schedules is made up after it", async (_, change) => {
  const { pass, fired, alarm } = await deploy(change);
  const paused = new PausedJobs(new ResonateClient({ url: "http://resonate" }), "");
  await paused.pause("schedule");
  await pass(1);
  expect(await fired()).toEqual([]);
  // A pause may last for days.
  expect(alarm.at - Date.now()).toBeGreaterThan(50_000);
  await paused.resume("schedule");
  await pass(0.02);
  expect(await fired()).toEqual(["23T130000Z"]);
});

test("a definition's schedule is made once, replaced when it changes, and ended when it is removed", async () => {
  const { env } = begin();
  const storage = createStorage();
  /** The object of a new deployment, or with its `own` storage that of an edge on another machine. */
  const edge = (scheduled: ToolSchedule | undefined, own = storage) => {
    const tool = { ...report, ...(scheduled && { schedule: scheduled }) };
    Object.assign(definitions, { tools: [tool] });
    return openCallerObject(own, env);
  };
  const listed = async (object: OpenCallerObject) => {
    const jobs = await object.list("", { limit: 100 });
    return jobs.map(({ id, state }) => `${id.replace(/%3A\w+$|%3A[\w-]{8}(?=~|$)/, "")} ${state}`).sort();
  };
  const made = "schedule_deployment%3Areport";
  const hourly = { every: HOUR, arguments: { of: "x" } };
  const [one, other] = [edge(hourly), edge(hourly, createStorage())];
  await Promise.all([one.deploy(), other.deploy(), one.deploy()]);
  expect([await listed(one), await listed(other)]).toEqual([[`${made} pending`], [`${made} pending`]]);
  vi.setSystemTime(BEGAN + HOUR);
  await Promise.all([one.alarm(), other.alarm()]);
  // Both decide to fire, and one job exists.
  const fired = "report_x@20261123T130000Z pending";
  expect([await listed(one), await listed(other)]).toEqual(Array(2).fill([fired, `${made} pending`]));
  // A restart changes nothing, and a deployment with another time replaces the schedule.
  const again = edge(hourly);
  await again.deploy();
  expect(await listed(again)).toEqual([fired, `${made} pending`]);
  const changed = edge({ ...hourly, every: 2 * HOUR });
  await changed.deploy();
  expect(await listed(changed)).toEqual([fired, `${made} pending`, `${made} rejected_canceled`]);
  // Nobody calls `deploy` where no tool has a schedule: the alarm ends the schedule before it would fire.
  const without = edge(undefined);
  vi.setSystemTime(BEGAN + 24 * HOUR);
  await without.alarm();
  expect(await listed(without)).toEqual([fired, `${made} rejected_canceled`, `${made} rejected_canceled`]);
  // The first schedule is back: a new generation, which fires again.
  const back = edge(hourly);
  await back.deploy();
  await back.alarm();
  vi.setSystemTime(BEGAN + 25 * HOUR);
  await back.alarm();
  expect(await listed(back)).toEqual(expect.arrayContaining([expect.stringMatching(/^report_x@20261124T130000Z/)]));
});

test("a definition's schedule with an invalid time is not made, and the log says so", async () => {
  const { env } = begin();
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  Object.assign(definitions, { tools: [{ ...report, schedule: { cron: "0 25 * * *" } }] });
  const object = openCallerObject(createStorage(), env);
  await object.deploy();
  expect(await object.list("", { limit: 10 })).toEqual([]);
  expect(JSON.stringify(error.mock.calls)).toContain("schedule not made");
  error.mockRestore();
});

test.each(["is something else's", "cannot be decrypted"])(
  "a definition's schedule whose promise %s does not keep others from being made, and the log says so",
  async (why) => {
    const { env, sim } = begin();
    const error = vi.spyOn(console, "error").mockImplementation(() => {});
    const first = { ...report, schedule: { cron: "0 1 * * *" } };
    const deployWith = async (tools: Tool[]) => {
      Object.assign(definitions, { tools });
      const object = openCallerObject(createStorage(), env);
      await object.deploy();
      return object;
    };
    await deployWith([first]);
    const [id = ""] = sim.promises().filter((id) => id.startsWith("schedule_"));
    const record = sim.get(id);
    if (record) record.param.data = why === "cannot be decrypted" ? "sealed:none:AAAA" : btoa("{}");
    const object = await deployWith([first, { ...report, name: "other", schedule: { cron: "0 2 * * *" } }]);
    const listed = await object.list("", { limit: 10 });
    expect(listed.map(({ id }) => id)).toContainEqual(expect.stringContaining("other"));
    expect(JSON.stringify(error.mock.calls)).toContain("schedule not made");
    error.mockRestore();
  },
);

test("a caller has a bounded number of schedules, and is told how to make room for another", async () => {
  const { store } = await deploy({});
  const make = (n: number) => {
    const spec: Schedule = {
      name: `n${n}`,
      tool: "report",
      arguments: {},
      when: { every: 60, from: 0 },
      missed: "skip",
      overlap: "skip",
    };
    return startJob(store, schedule as Job, spec, Date.now());
  };
  const made = await Promise.allSettled(Array.from({ length: 110 }, (_, n) => make(n)));
  expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(99);
  await expect(make(200)).rejects.toThrow(/may have 100 schedules: end one with cancel_job/);
  await store.cancel("schedule_n1");
  await make(200);
});

test("a schedule fires although its start succeeds only after a look has found that an earlier job has ended", async () => {
  const { sim, store, spec, alarm, pass, doing } = await deploy({}, 1);
  // The record does not hear of this end.
  await sim.send("promise.settle", { id: `${KEY}schedule_s`, state: "rejected_canceled", value: {} });
  await startJob(store, schedule as Job, { ...spec, name: "next" }, Date.now());
  expect(alarm.at).toBeLessThanOrEqual(Date.now());
  await pass(0);
  expect(await doing("schedule_next")).toBe("fires next 2026-11-23T13:00:00.000Z");
});

test("a schedule that fires each minute does not fill the server with its progress entries", async () => {
  const { sim, minutes } = await deploy({ when: { every: 60, from: BEGAN } });
  await minutes(300);
  const told = Array.from({ length: 300 }, (_, n) => feedEntryId(`${KEY}schedule_s`, n)).filter((id) => sim.get(id));
  expect(told.length).toBeGreaterThan(5);
  expect(told.length).toBeLessThan(70);
  expect(sim.promises().filter((id) => /report_x@[^:]*$/.test(id)).length).toBeGreaterThan(100);
});

test("a schedule that is made again after the retention has removed an ended one of its name fires", async () => {
  const { sim, store, spec, pass, fired } = await deploy({});
  await store.cancel("schedule_s");
  sim.forget(`${KEY}schedule_s`);
  await startJob(store, schedule as Job, spec, Date.now());
  await pass(0);
  await pass(1);
  expect(await fired()).toEqual(["23T130000Z"]);
});

test("a nightly schedule shows a next firing to come, also if its firings are not exactly a day apart", async () => {
  const { pass, doing } = await deploy({ when: { cron: "0 12 * * *" } });
  for (let day = 1; day <= 14; day++) {
    // Each second alarm is 20 ms late.
    vi.setSystemTime(BEGAN + day * 24 * HOUR + (day % 2) * 20);
    await pass(0);
    const next = new Date(BEGAN + (day + 1) * 24 * HOUR).toISOString();
    expect(await doing()).toMatch(new RegExp(`^fires next ${next}; last: `));
  }
});

test.each([
  ["whose tool throws at its arguments", { tool: "odd" }],
  ["with a time that cannot be read any more", { when: { cron: "odd" } }],
  ["that cannot be decrypted", {}],
])("a schedule %s does not stop the others of its caller, and is tried once in minutes", async (how, change) => {
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  const schema = z.object({ of: z.string() }).transform(() => {
    throw new TypeError("odd");
  });
  const odd = { ...report, name: "odd", input: { ...report.input, schema } };
  const { sim, store, spec, alarm, pass, end, fired } = await deploy({}, 100, [odd]);
  await startJob(store, schedule as Job, { ...spec, ...change, name: "odd" }, Date.now());
  const record = sim.get(`${KEY}schedule_odd`);
  if (record && how === "that cannot be decrypted") record.param.data = "sealed:none:AAAA";
  await pass(0);
  await pass(1);
  await end("23T130000Z");
  expect(alarm.at).toBeGreaterThanOrEqual(Date.now() + 240_000);
  await pass(1);
  expect(await fired()).toEqual(["23T130000Z", "23T140000Z"]);
  error.mockRestore();
});

test("a one-time schedule ends although the edge dies after its firing was noted", async () => {
  const { sim, pass, block, fired } = await deploy({ when: { at: new Date(BEGAN + HOUR).toISOString() } });
  const send = sim.send.bind(sim);
  const settling = Promise.withResolvers<void>();
  const dies = vi.spyOn(sim, "send").mockImplementation((kind, data) => {
    if (kind !== "promise.settle") return send(kind, data as never) as never;
    settling.resolve();
    return new Promise<never>(() => {});
  });
  void pass(1);
  await settling.promise;
  dies.mockRestore();
  block("nobody");
  await pass(0.01);
  expect([await fired(), sim.get(`${KEY}schedule_s`)?.state]).toEqual([["23T130000Z"], "resolved"]);
});
