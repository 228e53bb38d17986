/**
 * A worker that does not know that its leases have lapsed, with jobs that wait for their turn: it sends no request for any of
 * them. Only a request that was under way when the worker was stopped is repeated, by the worker that then has the job.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { journalEntryId } from "../../../core/resonate/ids.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

vi.setConfig({ testTimeout: 120_000 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

/** Two workers of one group. The first takes the jobs, and reaches the Resonate server through a gate. */
async function scene() {
  await using made = new AsyncDisposableStack();
  const archive = made.use(await startSampleArchive());
  const gate = made.use(await startGate(resonate.url));
  const { group, namespace, env } = ownGroup();
  const worker = (more: Record<string, string>) => {
    // So long that no request ends by itself while the test holds the archive.
    const settings = { WEATHER_API_URL: archive.url, LEASE_SECONDS: "2", UPSTREAM_TIMEOUT_SECONDS: "60", ...more };
    return startWorker({ ...resonate.env, ...env, ...settings });
  };
  const all = made.move();
  const nameOf = (month: number) => `weather_data_47.6_-122.3_2013_${month}`;
  const each = <T>(months: readonly number[], work: (job: string) => Promise<T>) =>
    Promise.all(months.map((month) => work(nameOf(month))));
  return {
    archive,
    gate,
    each,
    first: (most: number) => worker({ RESONATE_URL: gate.url, UPSTREAM_CONCURRENCY: String(most) }),
    /** Starts the second worker, and cuts the first one off from dispatches: the jobs that it loses go to the second. */
    async second() {
      gate.holdStreams(true);
      gate.cutStreams();
      return worker({ UPSTREAM_CONCURRENCY: "4" });
    },
    async gather(months: readonly number[]) {
      for (const month of months) {
        const args = { latitude: 47.6, longitude: -122.3, year: 2013, month };
        const id = namespace + nameOf(month);
        await resonate.start({ id, func: "weather_data", args, group, timeoutAt: Date.now() + 600_000 });
      }
    },
    /** Waits until the journal records that the first attempt has failed, so that the pause before the second has begun. */
    paused: (month: number) =>
      until(
        "the pause to be recorded",
        async () => (await resonate.get(journalEntryId(`${namespace}${nameOf(month)}`, 1))) !== undefined,
      ),
    asked: (months: readonly number[]) => months.map((month) => archive.control.count(`2013-0${month}`)),
    askedInAll: (count: number) =>
      until(`${count} requests`, () => archive.control.requests.total >= count || undefined, 60_000),
    async completed(months: readonly number[], by: WorkerProcess) {
      await each(months, async (job) => {
        expect((await resonate.settled(namespace + job, 60_000)).state).toBe("resolved");
        await by.waitForLog(job, "job done");
      });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

test("a worker stopped while months wait for the archive's limit requests none of them: another worker does", async () => {
  await using the = await scene();
  const months = [1, 2, 3];
  await using first = await the.first(1);
  const answerFirst = the.archive.control.hold(1);
  await the.gather([1]);
  await the.askedInAll(1);
  await the.gather([2, 3]);
  await the.each(months, (job) => first.waitForLog(job, "job started"));

  first.signal("SIGSTOP");
  const answerSecond = the.archive.control.hold(3);
  await using second = await the.second();
  await the.askedInAll(4);
  first.signal("SIGCONT");
  answerFirst();
  // The one slot of the first worker goes from each month to the next.
  await the.each(months, (job) => first.waitForLog(job, "job left"));
  expect(the.asked(months)).toEqual([2, 1, 1]);
  answerSecond();
  await the.completed(months, second);
  expect(the.asked(months)).toEqual([2, 1, 1]);
});

test("a worker stopped in the pause between two attempts makes no second one: another worker does", async () => {
  await using the = await scene();
  await using first = await the.first(4);
  the.archive.control.inject({ fault: { kind: "status", status: 503, retry_after: "4" }, times: 1 });
  await the.gather([5]);
  await the.paused(5);
  first.signal("SIGSTOP");
  const answer = the.archive.control.hold(1);
  await using second = await the.second();
  await the.askedInAll(2);
  first.signal("SIGCONT");
  await the.each([5], (job) => first.waitForLog(job, "job left"));
  expect(the.asked([5])).toEqual([2]);
  answer();
  await the.completed([5], second);
  expect(the.asked([5])).toEqual([2]);
});

test("a worker whose heartbeats do not arrive makes no further attempt once its lease has lapsed", async () => {
  await using the = await scene();
  await using first = await the.first(4);
  the.archive.control.inject({ fault: { kind: "status", status: 503, retry_after: "4" }, times: 1 });
  const held = the.gate.hold("task.heartbeat");
  await the.gather([6]);
  await the.paused(6);
  await held;
  await using second = await the.second();
  await the.each([6], (job) => first.waitForLog(job, "job left"));
  await the.completed([6], second);
  expect(the.asked([6])).toEqual([2]);
});
