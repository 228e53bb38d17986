/** When a caller's jobs and their progress feeds are looked at. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import type { SettlementSource } from "../../core/jobs/settlements.ts";
import { feedEntryId } from "../../core/resonate/ids.ts";
import { EventLog, eventTables } from "../../features/events/event-log.ts";
import { JobOutputs } from "../../features/events/job-outputs.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { JobRefresher } from "./job-refresher.ts";
import { JobTable, RECORD_TABLES } from "./job-table.ts";
import { Watch } from "./watch.ts";

const MINUTE = 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a progress entry that is pushed while only ends are wanted is read once progress is wanted again", async () => {
  let push = (_news: { id: string }) => {};
  const source: SettlementSource = {
    open: async ({ onNews }) => {
      push = onNews;
      return { address: "poll://uni@edge/1", closed: new Promise(() => {}), add: async () => {} };
    },
  };
  const readFeed = vi.fn(async () => {});
  const listen = async (id: string) => ({ id, createdAt: Date.now(), timeoutAt: Date.now() + 60 * MINUTE });
  const jobs = { leastSeen: () => [], pending: () => ["job"] };
  const watch = new Watch({ source, key: () => "", jobs, refresher: { refresh: async () => [], listen }, readFeed });
  watch.extend(Date.now() + MINUTE, true);
  watch.extend(Date.now() + 10 * MINUTE, false);
  await vi.advanceTimersByTimeAsync(2 * MINUTE);
  expect(readFeed).toHaveBeenCalledTimes(1);
  push({ id: feedEntryId("job", 1) });
  await vi.advanceTimersByTimeAsync(MINUTE);
  expect(readFeed).toHaveBeenCalledTimes(1);
  watch.extend(Date.now() + MINUTE, true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(readFeed).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(20 * MINUTE);
});

/** A caller's jobs whose promises `call` reads, with one job in its record that times out in `minutes`. */
function watched(call: (call: { kind: string; data: object }) => Promise<unknown>, minutes: number) {
  const channel = { address: "poll://uni@edge/1", closed: new Promise<never>(() => {}), add: async () => {} };
  const sql = openTables([RECORD_TABLES, eventTables({} as never)]);
  const jobs = new JobTable(sql);
  const client = { call } as never;
  const feeds = new ProgressFeeds(client);
  const outputs = new JobOutputs({
    log: new EventLog(sql),
    client,
    feeds,
    jobs,
    nameOf: (id) => id,
    areOutputsWanted: () => false,
    onNews() {},
  });
  const refresher = new JobRefresher({
    jobs,
    client,
    retentionMs: Infinity,
    maxJobBytes: Infinity,
    key: () => "",
  });
  const times = { startedAt: Date.now(), settledAt: null, due: Date.now() + minutes * MINUTE };
  const none = { period: "", count: 0, bytes: 0, labels: [] };
  jobs.reserve({ id: "job", kind: "timer", state: "pending", ...times, ...none }, { jobs: 0, bytes: 0 }, Date.now());
  const watch = new Watch({
    source: { open: async () => channel },
    key: () => "",
    jobs,
    refresher,
    readFeed: (job, channel) => outputs.readFeed(job, channel),
  });
  return { jobs, watch };
}

test("a job whose edge died before it created the promise is asked for until it is removed, which is soon", async () => {
  const call = vi.fn(async () => undefined);
  const { jobs, watch } = watched(call, 60);
  watch.extend(Date.now() + 10 * MINUTE, false);
  await vi.advanceTimersByTimeAsync(MINUTE);
  expect([call.mock.calls.length > 0, jobs.pending(1)]).toEqual([true, []]);
  call.mockClear();
  await vi.advanceTimersByTimeAsync(9 * MINUTE);
  expect(call).not.toHaveBeenCalled();
});

test("the feed of a job that timed out before somebody wants its progress is read a few times", async () => {
  const sim = new Simulation({ now: () => Date.now() });
  const call = vi.fn(async ({ kind, data }: { kind: string; data: object }) => {
    if (call.mock.calls.length > 1_000) throw new Error("too many calls");
    const answer = await sim.send(kind, data);
    return answer.status === 200 ? (answer.data as { promise: unknown }).promise : undefined;
  });
  await sim.start("job", { func: "timer" }, Date.now() + MINUTE);
  const { jobs, watch } = watched(call, 1);
  vi.setSystemTime(Date.now() + 2 * MINUTE);
  watch.extend(Date.now() + 5 * MINUTE, true);
  await vi.advanceTimersByTimeAsync(6 * MINUTE);
  expect([jobs.pending(1), call.mock.calls.length]).toEqual([[], expect.toSatisfy((n) => n < 50)]);
});
