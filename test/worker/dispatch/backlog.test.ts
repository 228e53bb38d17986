/** A worker with more jobs than slots claims them as they are dispatched, and keeps them until their turn. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 4 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

/** An archive and a worker group for one test, with a gate before the server. */
async function scene(env: Record<string, string>) {
  const [archive, gate] = await Promise.all([startSampleArchive(), startGate(resonate.url)]);
  const { group, namespace, env: own } = ownGroup();
  return {
    archive,
    gate,
    worker: () =>
      startWorker({ ...resonate.env, ...own, RESONATE_URL: gate.url, WEATHER_API_URL: archive.url, ...env }),
    /** Starts jobs for `count` months, beginning `from` months after 2012-01, and returns their ids. */
    gather: async (count: number, from = 0) => {
      const starts = Array.from({ length: count }, (_, i) => {
        const [year, month] = [2012 + (i + from - ((i + from) % 12)) / 12, 1 + ((i + from) % 12)];
        const args = { latitude: 47.6, longitude: -122.3, year, month };
        return resonate.start({
          id: `${namespace}weather_data_47.6_-122.3_${year}_${month}`,
          func: "weather_data",
          args,
          group,
          timeoutAt: Date.now() + 3_600_000,
        });
      });
      return (await Promise.all(starts)).map(({ id }) => id);
    },
    setTimer: async (ms: number) => {
      const args = { timer_name: "tea", fires_at: new Date(Date.now() + ms).toISOString() };
      return (await resonate.start({ id: `${namespace}timer_tea`, func: "timer", args, group })).id;
    },
    count: (kind: string) => gate.calls.filter((call) => call.kind === kind).length,
    async [Symbol.asyncDispose]() {
      await Promise.all([archive, gate].map((part) => part[Symbol.asyncDispose]()));
    },
  };
}

const allSettled = (ids: readonly string[]) => Promise.all(ids.map((id) => resonate.settled(id, 45_000)));

describe.concurrent("a backlog", () => {
  test("is claimed up to MAX_QUEUED and kept for longer than a lease, and each of its jobs is done once", async () => {
    const lease = 9_000;
    await using the = await scene({ MAX_TASKS: "2", MAX_QUEUED: "20", LEASE_SECONDS: String(lease / 1_000) });
    const answer = the.archive.control.hold(2);
    await using _worker = await the.worker();
    const ids = await the.gather(40);
    await until("all but those past the bound to be taken", () => the.count("task.acquire") >= 22);
    const claimed = Date.now();
    // The backlog does not delay a timer.
    await resonate.settled(await the.setTimer(200));
    const states = await Promise.all(ids.map(resonate.task));
    // The jobs past the bound are left to other workers.
    expect(states.filter((task) => task?.state === "pending").length).toBeGreaterThan(0);
    await until("the leases to have been renewed", () => Date.now() > claimed + 1.1 * lease);
    answer();
    await allSettled(ids);
    expect(the.archive.control.requests.total).toBe(40);
  });

  test("goes on during a job's long pause before its next attempt, which holds no slot", async () => {
    await using the = await scene({ MAX_TASKS: "1" });
    const fault = { kind: "status", status: 503, retry_after: "1800" } as const;
    the.archive.control.inject({ fault, month: "2012-01", times: 1 });
    await using _worker = await the.worker();
    const [pausing = ""] = await the.gather(1);
    await until("the first attempt to have failed", () => the.archive.control.count("2012-01") === 1);
    await allSettled(await the.gather(3, 1));
    expect((await resonate.get(pausing))?.state).toBe("pending");
    expect(the.archive.control.count("2012-01")).toBe(1);
  });

  test("goes on when a job whose request hangs is cancelled: the step is told, and its slot becomes free", async () => {
    await using the = await scene({ MAX_TASKS: "1", UPSTREAM_TIMEOUT_SECONDS: "3000" });
    the.archive.control.inject({ fault: { kind: "hang" }, month: "2012-01" });
    await using _worker = await the.worker();
    const [hanging = ""] = await the.gather(1);
    await until("its request to be under way", () => the.archive.control.count("2012-01") === 1);
    const waiting = await the.gather(2, 1);
    await resonate.call("promise.settle", { id: hanging, state: "rejected_canceled", value: {} });
    await allSettled(waiting);
    expect(the.archive.control.requests.maxConcurrent).toBe(1);
  });

  test("makes no request for those of its jobs that are cancelled", async () => {
    await using the = await scene({ MAX_TASKS: "1", LEASE_SECONDS: "3" });
    const answer = the.archive.control.hold(1, "2012-01");
    await using _worker = await the.worker();
    const [first = ""] = await the.gather(1);
    await until("the request to be under way", () => the.archive.control.requests.total === 1);
    const [cancelled = "", last = ""] = await the.gather(2, 1);
    await until("the others to be taken", () => the.count("task.acquire") >= 3);
    await resonate.call("promise.settle", { id: cancelled, state: "rejected_canceled", value: {} });
    // Before a worker runs a task that it claimed more than a third of the lease ago, it checks the task again.
    const settled = Date.now();
    await until("a third of the lease to pass", () => Date.now() > settled + 1_100);
    answer();
    await allSettled([first, last]);
    expect(the.archive.control.requests.total).toBe(2);
  });

  test("whose leases lapse is claimed again and not done twice", async () => {
    await using the = await scene({ MAX_TASKS: "1", LEASE_SECONDS: "2" });
    const answer = the.archive.control.hold(1, "2012-01");
    await using _worker = await the.worker();
    await the.gather(1);
    await until("the request to be under way", () => the.archive.control.requests.total === 1);
    const others = await the.gather(4, 1);
    await until("the others to be taken", () => the.count("task.acquire") >= 5);
    const held = the.gate.hold("task.heartbeat");
    await until("them to be taken again", () => the.count("task.acquire") >= 9);
    await held;
    the.gate.release("task.heartbeat");
    answer();
    await allSettled(others);
    const asked = the.archive.control.requests.log.filter(({ query }) => !query.includes("2012-01-"));
    expect(asked.length).toBe(4);
  });

  test("of a stopping worker goes to another worker at once, while the first finishes its running job", async () => {
    await using the = await scene({ MAX_TASKS: "1", LEASE_SECONDS: "300", DRAIN_SECONDS: "3600" });
    the.archive.control.inject({ fault: { kind: "hang" }, month: "2012-01", times: 1 });
    await using first = await the.worker();
    await the.gather(1);
    await until("the request to be under way", () => the.archive.control.requests.total === 1);
    const others = await the.gather(5, 1);
    await until("the others to be taken", () => the.count("task.acquire") >= 6);
    await using second = await the.worker();
    first.signal("SIGTERM");
    await allSettled(others);
    await second.waitForLog(others[0]?.slice(others[0].indexOf("/") + 1) ?? "", "job done");
    expect(await (await fetch(first.healthUrl)).json()).toMatchObject({ status: "stopping", running: 1 });
  });
});
