import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { defineJob } from "../../../core/index.ts";
import { startJob } from "../../../core/jobs/start.ts";
import { journalEntryId } from "../../../core/resonate/ids.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { startGate } from "../../support/gate.ts";
import { jobStore } from "../../support/job-store.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 4 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const ARGS = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };
const JOB = "weather_data_47.6_-122.3_2013_5";
const SHORT_LEASE = { LEASE_SECONDS: "2" };
const LONG_LEASE = { LEASE_SECONDS: "300" }; // so that only a release can move a job on

/** An archive and a worker group for one test. */
async function scene() {
  const archive = await startSampleArchive();
  const { group, namespace, env } = ownGroup();
  return {
    archive,
    id: namespace + JOB,
    worker: (more: Record<string, string>) =>
      startWorker({ ...resonate.env, ...env, WEATHER_API_URL: archive.url, ...more }),
    gather: (job = JOB, args: object = ARGS) =>
      resonate.start({ id: namespace + job, func: "weather_data", args, group }),
    setTimer: (ms: number) => {
      const fires_at = new Date(Date.now() + ms).toISOString();
      return resonate.start({
        id: `${namespace}timer_tea`,
        func: "timer",
        args: { timer_name: "tea", fires_at },
        group,
      });
    },
    [Symbol.asyncDispose]: () => archive[Symbol.asyncDispose](),
  };
}

const underway = (archive: SampleArchive, n = 1) =>
  until("the request to be under way", () => archive.control.requests.total >= n);

describe.concurrent("kill -9", () => {
  test("during the fetch: another worker sends the request again and completes the job", async () => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "hang" }, times: 1 });
    await using first = await the.worker(SHORT_LEASE);
    await the.gather();
    await underway(the.archive);
    first.signal("SIGKILL");
    await first.exited;
    await using second = await the.worker(SHORT_LEASE);
    const { state, value } = await resonate.settled(the.id, 45_000);
    expect([state, value.data?.daily?.time?.length]).toEqual(["resolved", 31]);
    expect(the.archive.control.requests.total).toBe(2);
    await second.waitForLog(JOB, "job done");
  });

  test("after the fetch, before the job is settled: another worker completes the job without another request", async () => {
    await using the = await scene();
    await using gate = await startGate(resonate.url);
    const settling = gate.hold("task.fulfill");
    await using first = await the.worker({ ...SHORT_LEASE, RESONATE_URL: gate.url });
    await the.gather();
    await settling;
    first.signal("SIGKILL");
    await first.exited;
    await using _second = await the.worker(SHORT_LEASE);
    const { state, value } = await resonate.settled(the.id, 45_000);
    expect([state, value.data?.daily?.time?.length]).toEqual(["resolved", 31]);
    expect(the.archive.control.requests.total).toBe(1);
  });

  test.each([
    ["short pause, during which the worker keeps the job,", "3", "acquired"],
    ["long pause, during which the job sleeps,", "7", "suspended"],
  ])("during a %s between two attempts: another worker makes the second attempt", async (_what, retry_after, state) => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "status", status: 503, retry_after }, times: 1 });
    await using first = await the.worker(SHORT_LEASE);
    await the.gather();
    await first.waitForLog(JOB, "attempt failed");
    await until("the pause to be recorded", async () => (await resonate.get(journalEntryId(the.id, 1))) !== undefined);
    await until("the job to pause", async () => (await resonate.task(the.id))?.state === state);
    first.signal("SIGKILL");
    await first.exited;
    await using _second = await the.worker(SHORT_LEASE);
    expect(await resonate.settled(the.id, 45_000)).toMatchObject({ state: "resolved" });
    const [first_at = 0, second_at = 0, ...more] = the.archive.control.requests.log.map(({ at }) => at);
    expect(second_at - first_at).toBeGreaterThanOrEqual(Number(retry_after) * 1_000);
    expect(more).toEqual([]);
  });

  test("during a timer's sleep: another worker completes it, not early", async () => {
    await using the = await scene();
    await using first = await the.worker(SHORT_LEASE);
    const { id, param } = await the.setTimer(3_000);
    await resonate.asleep(id);
    first.signal("SIGKILL");
    await first.exited;
    await using _second = await the.worker(SHORT_LEASE);
    const { state, value, settledAt } = await resonate.settled(id, 45_000);
    expect([state, value.data]).toEqual(["resolved", "complete"]);
    const { fires_at } = JSON.parse(Buffer.from(param.data, "base64").toString()).args[0];
    expect(settledAt).toBeGreaterThanOrEqual(Date.parse(fires_at));
  });
});

test.each([
  ["is cancelled before another worker runs", "rejected_canceled"],
  ["fails in another worker", "rejected"],
])("a worker is killed while it starts children, and their job %s: none is left running", async (_what, state) => {
  const { group, namespace, env } = ownGroup();
  const worker = () =>
    startWorker({ ...resonate.env, ...env, ...SHORT_LEASE }, { script: "test/worker/scripts/calling-worker.ts" });
  const brood = defineJob({ kind: "brood", args: z.object({ n: z.number() }), id: ({ n }) => n });
  const store = jobStore({ url: resonate.url, token: process.env.RESONATE_TOKEN, group, namespace }, [brood]);
  const first = await worker();
  const { name, id } = await startJob(store, brood, { n: 1 }, Date.now());
  const childOf = (n: number) => resonate.get(`${namespace}nap_${n}`);
  await until("the first children", async () => (await childOf(5)) !== undefined);
  first.signal("SIGKILL");
  await first.exited;
  if (state === "rejected_canceled") await store.cancel(name);
  await using _second = await worker();
  expect(await resonate.settled(id, 45_000)).toMatchObject({ state });
  const isOver = async () => {
    const children = await Promise.all(Array.from({ length: 40 }, (_, i) => childOf(i + 1)));
    return children.every((child) => child?.state !== "pending") ? children.filter((child) => child) : undefined;
  };
  const children = await until("the children to end", isOver);
  expect(new Set(children.map((child) => child?.state))).toEqual(new Set(["rejected_canceled"]));
});

test("a job that takes longer than its lease stays with the worker that renews it", async () => {
  await using the = await scene();
  the.archive.control.inject({ fault: { kind: "slow", ms: 5_000 }, times: 1 });
  await using first = await the.worker(SHORT_LEASE);
  await using second = await the.worker(SHORT_LEASE);
  await the.gather();
  expect(await resonate.settled(the.id, 45_000)).toMatchObject({ state: "resolved" });
  expect(the.archive.control.requests.total).toBe(1);
  expect(
    [first, second].flatMap((worker) => worker.logsOf(JOB)).filter(({ msg }) => msg === "job started"),
  ).toHaveLength(1);
});

describe.concurrent("SIGTERM", () => {
  test("lets a running job finish, takes no other, and exits 0", async () => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "slow", ms: 1_500 }, times: 1 });
    await using first = await the.worker(LONG_LEASE);
    await the.gather();
    await underway(the.archive);
    first.signal("SIGTERM");
    await until("the worker to say that it stops", async () => (await fetch(first.healthUrl)).status === 503);
    const later = await the.gather("weather_data_47.6_-122.3_2013_6", { ...ARGS, month: 6 });
    expect(await first.exited).toMatchObject({ exitCode: 0 });
    expect(await resonate.get(the.id)).toMatchObject({ state: "resolved" });
    expect(await resonate.get(later.id)).toMatchObject({ state: "pending" });
    expect(the.archive.control.requests.total).toBe(1);
  });

  test("hands back a job that does not finish in time, so that another worker need not wait for its lease to lapse", async () => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "hang" }, times: 1 });
    await using first = await the.worker({ ...LONG_LEASE, DRAIN_SECONDS: "0.3" });
    await the.gather();
    await underway(the.archive);
    await using _second = await the.worker(LONG_LEASE);
    first.signal("SIGTERM");
    expect(await first.exited).toMatchObject({ exitCode: 0 });
    expect(first.logsOf(JOB)).toContainEqual(expect.objectContaining({ msg: "job released" }));
    expect(await resonate.settled(the.id, 10_000)).toMatchObject({ state: "resolved" });
  });

  test("also hands back the jobs that wait for a slot", async () => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "hang" }, month: "2013-05", times: 1 });
    await using first = await the.worker({ ...LONG_LEASE, DRAIN_SECONDS: "1", MAX_TASKS: "1" });
    await the.gather();
    await underway(the.archive);
    const others = [6, 7, 8].map((month) => ({ month, job: `weather_data_47.6_-122.3_2013_${month}` }));
    for (const { month, job } of others) await the.gather(job, { ...ARGS, month });
    const { id } = await the.setTimer(1);
    await resonate.settled(id); // the timer's task was dispatched last, so the worker has the waiting jobs by now
    await using second = await the.worker(LONG_LEASE);
    first.signal("SIGTERM");
    expect(await first.exited).toMatchObject({ exitCode: 0 });
    for (const job of [JOB, ...others.map(({ job }) => job)]) await second.waitForLog(job, "job done");
  });

  test("twice ends the process at once", async () => {
    await using the = await scene();
    the.archive.control.inject({ fault: { kind: "hang" } });
    await using worker = await the.worker({ DRAIN_SECONDS: "3600" });
    await the.gather();
    await underway(the.archive);
    worker.signal("SIGTERM");
    await until("the worker to say that it stops", async () => (await fetch(worker.healthUrl)).status === 503);
    worker.signal("SIGTERM");
    expect(await worker.exited).toMatchObject({ exitCode: 1 });
  });
});

test("the late result of a worker that was paused past its lease changes nothing, and the worker goes on with other jobs", async () => {
  await using the = await scene();
  the.archive.control.inject({ fault: { kind: "slow", ms: 1_000 }, month: "2013-05", times: 1 });
  await using paused = await the.worker(SHORT_LEASE);
  await the.gather();
  await underway(the.archive);
  paused.signal("SIGSTOP");
  const dispatched = await until("its lease to lapse", async () => {
    const task = await resonate.task(the.id);
    return task?.state === "pending" ? task : undefined;
  });
  // Another worker takes the task and settles the job while the first one is stopped.
  const { id, version } = dispatched;
  const lease = await resonate.call("task.acquire", { id, version, pid: "another", ttl: 60_000 });
  expect(lease.head.status).toBe(200);
  const action = { id, state: "resolved" as const, value: { data: btoa('"settled by another"') } };
  const head = { corrId: "1", version: "2026-04-01" };
  await resonate.call("task.fulfill", {
    id,
    version: version + 1,
    action: { kind: "promise.settle", head, data: action },
  });
  paused.signal("SIGCONT");
  await paused.waitForLog(JOB, "job left");
  expect((await resonate.get(the.id))?.value.data).toBe("settled by another");
  expect(paused.logsOf(JOB).some(({ msg }) => msg === "job done")).toBe(false);
  const next = await the.gather("weather_data_47.6_-122.3_2013_6", { ...ARGS, month: 6 });
  expect(await resonate.settled(next.id, 45_000)).toMatchObject({ state: "resolved" });
});
