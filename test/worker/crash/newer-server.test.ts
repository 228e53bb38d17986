/**
 * A server that refuses to suspend a job on promises of other jobs and to renew the leases of several jobs in one request, as
 * releases after 0.9.8 do: the worker awaits those promises and renews those leases in another way.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { feedEntryId, isChildOf } from "../../../core/resonate/ids.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

interface Suspension {
  id: string;
  actions: { data: { awaited: string } }[];
}

test("a range learns at once that its months have ended, even after its worker has died", async () => {
  await using archive = await startSampleArchive();
  await using gate = await startGate(resonate.url);
  let refused = 0;
  gate.refuse("task.suspend", (data) => {
    const { id, actions } = data as unknown as Suspension;
    const isForeign = actions.some(({ data: { awaited } }) => !isChildOf(id, awaited));
    if (isForeign) refused += 1;
    return isForeign ? 400 : undefined;
  });
  const { group, namespace, env } = ownGroup();
  const settings = {
    ...resonate.env,
    ...env,
    RESONATE_URL: gate.url,
    WEATHER_API_URL: archive.url,
    LEASE_SECONDS: "2",
  };
  const start = () => startWorker(settings);
  await using first = await start();
  const gather = async (latitude: number, months: number) => {
    const id = `${namespace}weather_range_${latitude}_-122.3_2013-01_2013-${String(months).padStart(2, "0")}`;
    const args = { latitude, longitude: -122.3, from: "2013-01", to: id.slice(-7), confirmed: true };
    await resonate.start({ id, func: "weather_range", group, args, timeoutAt: Date.now() + 600_000 });
    return id;
  };

  archive.control.inject({ fault: { kind: "status", status: 503 }, times: 12 });
  const id = await gather(47.6, 12);
  const { state, value } = await resonate.settled(id, 60_000);
  expect([state, (value.data as { months: object[] }).months.length]).toEqual(["resolved", 12]);
  // The job slept, but possibly for too short a time to see it in the state of its task.
  expect(gate.calls).toContainEqual(expect.objectContaining({ kind: "task.suspend", id }));
  // The worker tries such a suspension once and then no more.
  expect(refused).toBe(1);

  // The months end after the worker that awaited them has died: the job checks them by itself after a while.
  archive.control.inject({ fault: { kind: "status", status: 503 } });
  const other = await gather(47.7, 2);
  await resonate.asleep(other, 60_000);
  first.signal("SIGKILL");
  archive.control.clear();
  await using _second = await start();
  expect((await resonate.settled(other, 90_000)).state).toBe("resolved");
});

test("a worker whose request to renew several leases is refused renews each in its own request and repeats no job", async () => {
  await using archive = await startSampleArchive();
  await using gate = await startGate(resonate.url);
  gate.refuse("task.heartbeat", ({ tasks }) => ((tasks as object[]).length > 1 ? 400 : undefined));
  const { group, namespace, env } = ownGroup();
  const settings = { RESONATE_URL: gate.url, WEATHER_API_URL: archive.url, LEASE_SECONDS: "2" };
  await using _worker = await startWorker({ ...resonate.env, ...env, ...settings });
  // Each takes several leases.
  archive.control.inject({ fault: { kind: "slow", ms: 5_000 }, times: 3 });
  const ids = await Promise.all(
    [1, 2, 3].map(async (month) => {
      const id = `${namespace}weather_data_47.6_-122.3_2013_${month}`;
      const args = { latitude: 47.6, longitude: -122.3, year: 2013, month };
      await resonate.start({ id, func: "weather_data", args, group, timeoutAt: Date.now() + 90_000 });
      return id;
    }),
  );
  for (const id of ids) expect(await resonate.settled(id, 60_000)).toMatchObject({ state: "resolved" });
  expect(archive.control.requests.total).toBe(3);
  expect(gate.calls.filter(({ kind }) => kind === "task.heartbeat").length).toBeGreaterThan(3);
});

test("a request that the server refuses as malformed visibly blocks its job until the server accepts it", async () => {
  await using gate = await startGate(resonate.url);
  let isRefusing = true;
  gate.refuse("task.fence", () => (isRefusing ? 400 : undefined));
  const { group, namespace, env } = ownGroup();
  await using worker = await startWorker({ ...resonate.env, ...env, RESONATE_URL: gate.url, LEASE_SECONDS: "2" });
  const id = `${namespace}timer_refused`;
  const fires_at = new Date(Date.now() + 1_000).toISOString();
  await resonate.start({ id, func: "timer", args: { timer_name: "refused", fires_at }, group });
  const line = await until("the worker to say so", () => worker.logs().find(({ msg }) => msg === "job blocked"));
  const reason = "the Resonate server refuses the request task.fence (it refused the request as malformed)";
  expect(line).toMatchObject({ level: "error", job: "timer_refused", reason });
  const told = await until("the job to say so", async () => (await resonate.get(feedEntryId(id, 1)))?.param.data);
  expect(told).toMatchObject({ blocked: reason });
  // It says so from the first execution on.
  expect((await resonate.task(id))?.version).toBeLessThan(4);
  const metrics = await (await fetch(new URL("/metrics", worker.healthUrl))).text();
  expect(metrics).toMatch(/resonate_requests_total\{[^}]*kind="task.fence"[^}]*status="400"[^}]*\} [1-9]/);
  isRefusing = false;
  expect((await resonate.settled(id, 60_000)).state).toBe("resolved");
});
