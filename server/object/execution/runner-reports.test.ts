import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { WorkerReport } from "../../../core/jobs/worker-report.ts";
import { WorkerStats } from "../../../core/jobs/worker-stats.ts";
import { objectWith } from "../../../test/support/object-calls.ts";
import { RunnerReports } from "./runner-reports.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The reports of runners to an object, which answers while it `isUp`, and how many failed jobs each of them names. */
function reportFailures() {
  const receiver = { isUp: true, failures: [] as number[] };
  const report = async (report: WorkerReport) => {
    if (!receiver.isUp) throw new Error("no answer");
    receiver.failures.push(report.failed.length);
    return { done: undefined };
  };
  const objects = { idFromName: () => ({}), get: () => objectWith({ "operators.report": report }) };
  const reports = new RunnerReports({ objects, namespace: "", group: "workers", maxConcurrent: 50 });
  const fail = (count: number) => {
    const runner = new WorkerStats(() => {});
    for (let i = 0; i < count; i++)
      runner.ended({ job: `tea_${i}`, kind: "tea", outcome: "failed", ms: 1, reason: "no water" });
    reports.add({ kinds: { tea: 1 }, news: runner.takeNews() });
  };
  return { receiver, fail };
}

test("more failed jobs than a report names follow in further reports soon", async () => {
  const { receiver, fail } = reportFailures();
  fail(1_000);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(receiver.failures).toEqual([200, 200, 200, 200, 200]);
  expect(vi.getTimerCount()).toBe(0);
  fail(10);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(receiver.failures).toHaveLength(5); // Half a minute lies between other reports.
  await vi.advanceTimersByTimeAsync(25_000);
  expect(receiver.failures).toHaveLength(6);
});

test("a report that the object does not answer is sent again, and the others after it", async () => {
  const { receiver, fail } = reportFailures();
  receiver.isUp = false;
  fail(300);
  await vi.advanceTimersByTimeAsync(5_000);
  receiver.isUp = true;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(receiver.failures).toEqual([]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(receiver.failures).toEqual([200, 100]);
});
