import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../infra/testing/process.ts";
import { ownGroup, startWorker } from "../../infra/testing/worker.ts";
import { type SampleArchive, startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 3 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const ARGS = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };
const JOB = "weather_data_47.6_-122.3_2013_5";

async function scene(env: Record<string, string>) {
  const [archive, gate] = await Promise.all([startSampleArchive(), startGate(resonate.url)]);
  const { group, namespace, env: own } = ownGroup();
  const worker = await startWorker({
    ...resonate.env,
    ...own,
    RESONATE_URL: gate.url,
    WEATHER_API_URL: archive.url,
    ...env,
  });
  return {
    archive,
    gate,
    worker,
    id: namespace + JOB,
    gather: (timeoutAt = Date.now() + 60_000) =>
      resonate.start({ id: namespace + JOB, func: "weather_data", args: ARGS, group, timeoutAt }),
    health: async () => (await fetch(worker.healthUrl)).json(),
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await Promise.all([gate, archive].map((part: Gate | SampleArchive) => part[Symbol.asyncDispose]()));
    },
  };
}

describe.concurrent("while Resonate cannot be reached", () => {
  test("a job that runs keeps what it has fetched, and health says so", async () => {
    await using the = await scene({ LEASE_SECONDS: "60" });
    expect(await the.health()).toMatchObject({ status: "ok", connected: true });
    the.archive.control.inject({ fault: { kind: "slow", ms: 500 } });
    await the.gather();
    await until("the request to be under way", () => the.archive.control.requests.total === 1);
    await the.gate.close();
    await until("health to say so", async () => !(await the.health()).connected);
    expect(await the.health()).toEqual({ status: "disconnected", connected: false, running: 1 });
    await the.gate.open();
    expect(await resonate.settled(the.id, 20_000)).toMatchObject({ state: "resolved" });
    expect(the.archive.control.requests.total).toBe(1);
    await until("the worker to be connected again", async () => (await the.health()).connected);
  });

  test("for longer than a lease, the job is left, and done anew afterwards", async () => {
    await using the = await scene({ LEASE_SECONDS: "1" });
    the.archive.control.inject({ fault: { kind: "slow", ms: 300 } });
    await the.gather();
    await until("the request to be under way", () => the.archive.control.requests.total === 1);
    await the.gate.close();
    await the.worker.said(JOB, "job left");
    await the.gate.open();
    expect(await resonate.settled(the.id, 45_000)).toMatchObject({ state: "resolved" });
    expect(the.archive.control.requests.total).toBe(2);
  });
});

describe.concurrent("an answer that is lost on its way", () => {
  test.each([["task.acquire"], ["task.fence"], ["task.suspend"], ["task.fulfill"]])(
    "to %s costs neither the job nor a second request",
    async (kind) => {
      await using the = await scene({ LEASE_SECONDS: "2" });
      // One failed attempt first, and a pause so long that the job sleeps once.
      the.archive.control.inject({ fault: { kind: "status", status: 503, retry_after: "6" }, times: 1 });
      const lost = the.gate.loseAnswer(kind);
      await the.gather();
      await lost;
      const { state, value } = await resonate.settled(the.id, 45_000);
      expect([state, value.data?.daily?.time?.length]).toEqual(["resolved", 31]);
      expect(the.archive.control.requests.total).toBe(2);
    },
  );
});

test("a task that could not be claimed is claimed as soon as it can be, and not when it is dispatched again", async () => {
  await using the = await scene({ LEASE_SECONDS: "1", LOG_LEVEL: "debug" });
  const held = the.gate.hold("task.acquire");
  await the.gather();
  await held;
  await the.worker.said(JOB, "task not taken");
  the.gate.release("task.acquire");
  // The embedded server dispatches it again after half a minute.
  expect(await resonate.settled(the.id, 20_000)).toMatchObject({ state: "resolved" });
});

describe.concurrent("a connection that dies without a word", () => {
  /** By when the worker has to have noticed, in milliseconds. */
  const NOTICED = 20_000;

  test("is noticed and replaced, and what was dispatched over it is not lost", { timeout: 200_000 }, async () => {
    await using the = await scene({});
    const { opened } = the.gate.streams;
    the.gate.freezeStreams();
    // A server that repeats a dispatch after half a minute may choose the dead connection again.
    await the.gather(Date.now() + 180_000);
    await until("another connection", () => the.gate.streams.opened > opened, NOTICED);
    expect(await resonate.settled(the.id, 170_000)).toMatchObject({ state: "resolved" });
  });

  test("shows in the worker's health while no other one can be made", async () => {
    await using the = await scene({});
    the.gate.holdStreams(true);
    the.gate.freezeStreams();
    await until("health to say so", async () => !(await the.health()).connected, NOTICED);
    the.gate.holdStreams(false);
    await until("the worker to be connected again", async () => (await the.health()).connected);
  });
});
