import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { type SampleArchive, startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { type Gate, startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

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
  test("a running job keeps the data it has fetched, and health reports the lost connection", async () => {
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

  test("for longer than a lease, the worker leaves the job, and it is done again afterwards", async () => {
    await using the = await scene({ LEASE_SECONDS: "1" });
    the.archive.control.inject({ fault: { kind: "slow", ms: 300 } });
    await the.gather();
    await until("the request to be under way", () => the.archive.control.requests.total === 1);
    await the.gate.close();
    await the.worker.waitForLog(JOB, "job left");
    await the.gate.open();
    expect(await resonate.settled(the.id, 45_000)).toMatchObject({ state: "resolved" });
    expect(the.archive.control.requests.total).toBe(2);
  });
});

describe.concurrent("an answer that is lost on its way", () => {
  test.each([["task.acquire"], ["task.fence"], ["task.suspend"], ["task.fulfill"]])(
    "to %s neither fails the job nor repeats its request",
    async (kind) => {
      await using the = await scene({ LEASE_SECONDS: "2" });
      // One failed attempt, followed by a pause that is long enough for the job to sleep.
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

test("a task that could not be claimed is claimed as soon as possible, not only when it is dispatched again", async () => {
  await using the = await scene({ LEASE_SECONDS: "1", LOG_LEVEL: "debug" });
  const held = the.gate.hold("task.acquire");
  await the.gather();
  await held;
  await the.worker.waitForLog(JOB, "task not taken");
  the.gate.release("task.acquire");
  // The embedded server dispatches it again after half a minute.
  expect(await resonate.settled(the.id, 20_000)).toMatchObject({ state: "resolved" });
});

test("timers that fell due while the server was down end soon after it is back, and so does a job that is started then", async () => {
  const data = await mkdtemp(join(tmpdir(), "down-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(data, { recursive: true, force: true }));
  const first = cleanup.use(await startResonate({ own: true, args: ["--data", data] }));
  const { group, namespace, env } = ownGroup();
  cleanup.use(await startWorker({ ...first.env, ...env }));
  const fires_at = new Date(Date.now() + 4_000).toISOString();
  const timer = async (server: Resonate, n: number) => {
    const id = `${namespace}timer_${n}`;
    await server.start({ id, func: "timer", args: { timer_name: String(n), fires_at }, group });
    return id;
  };
  const ids = await Promise.all(Array.from({ length: 30 }, (_, n) => timer(first, n)));
  await first.asleep(ids);
  first.program?.signal("SIGKILL");
  await first.program?.exited;
  await until("the timers to be due", () => Date.now() > Date.parse(fires_at));
  const again = cleanup.use(
    await startResonate({ own: true, port: Number(new URL(first.url).port), args: ["--data", data] }),
  );
  ids.push(await timer(again, 30));
  // A lost dispatch would be repeated only after half a minute.
  const ended = await Promise.all(ids.map((id) => again.settled(id, 20_000)));
  expect(ended.map(({ state }) => state)).toEqual(ids.map(() => "resolved"));
});

describe.concurrent("a connection that dies silently", () => {
  /** The time in which the worker has to notice it, in milliseconds. */
  const NOTICED = 20_000;

  test("is noticed and replaced, and tasks dispatched over it are not lost", { timeout: 200_000 }, async () => {
    await using the = await scene({});
    const { opened } = the.gate.streams;
    the.gate.freezeStreams();
    // A server that repeats a dispatch after half a minute may choose the dead connection again.
    await the.gather(Date.now() + 180_000);
    await until("another connection", () => the.gate.streams.opened > opened, NOTICED);
    expect(await resonate.settled(the.id, 170_000)).toMatchObject({ state: "resolved" });
  });

  test("shows in the worker's health while it cannot be replaced", async () => {
    await using the = await scene({});
    the.gate.holdStreams(true);
    the.gate.freezeStreams();
    await until("health to say so", async () => !(await the.health()).connected, NOTICED);
    the.gate.holdStreams(false);
    await until("the worker to be connected again", async () => (await the.health()).connected);
  });
});

// The embedded server writes comments, so its connections are not quiet.
test.runIf(process.env.RESONATE_URL)(
  "a worker that replaces a quiet connection asks for the server's rules again, as another release may answer",
  async () => {
    await using gate = await startGate(resonate.url);
    const { group, namespace, env } = ownGroup();
    await using _worker = await startWorker({ ...resonate.env, ...env, RESONATE_URL: gate.url });
    const sleep = async (timer_name: string) => {
      const id = `${namespace}timer_${timer_name}`;
      const now = Date.now();
      const timeoutAt = now + 3_600_000;
      const args = { timer_name, fires_at: new Date(now + 60_000).toISOString() };
      await resonate.start({ id, func: "timer", args, group, timeoutAt });
      await resonate.asleep(id);
      return gate.calls.filter(({ id }) => id?.startsWith(`${namespace}support_0.10`)).length;
    };
    expect([await sleep("one"), await sleep("two")]).toEqual([1, 1]);
    await until("the connection to be replaced", () => gate.streams.opened === 2);
    expect(await sleep("three")).toBe(2);
  },
);
