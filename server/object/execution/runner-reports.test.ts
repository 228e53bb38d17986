import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { callsOf } from "../../../core/resonate/object-calls.ts";
import { Figures } from "../../../features/operators/figures.ts";
import type { WorkerReport } from "../../../features/operators/worker-report.ts";
import { RunnerReports } from "./runner-reports.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The reports of runners to an object, which answers while it `isUp`, and how many jobs each of them named. */
function scene() {
  const the = { isUp: true, named: [] as number[] };
  const operate = async (_call: string, [report]: [WorkerReport]) => {
    if (!the.isUp) throw new Error("no answer");
    the.named.push(report.failed.length);
    return { done: undefined };
  };
  const objects = { idFromName: () => ({}), get: () => callsOf({ operate }) };
  const reports = new RunnerReports({ objects, namespace: "", group: "workers", most: 50 });
  const fail = (many: number) => {
    const runner = new Figures(() => {});
    for (let i = 0; i < many; i++)
      runner.ended({ job: `tea_${i}`, kind: "tea", outcome: "failed", ms: 1, reason: "no water" });
    reports.add({ kinds: { tea: 1 }, news: runner.takeNews() });
  };
  return { the, fail };
}

test("more failed jobs than a report names follow in further reports soon", async () => {
  const { the, fail } = scene();
  fail(1_000);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(the.named).toEqual([200, 200, 200, 200, 200]);
  expect(vi.getTimerCount()).toBe(0);
  fail(10);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(the.named).toHaveLength(5); // Half a minute lies between other reports.
  await vi.advanceTimersByTimeAsync(25_000);
  expect(the.named).toHaveLength(6);
});

test("a report that the object does not answer is sent again, and the others after it", async () => {
  const { the, fail } = scene();
  the.isUp = false;
  fail(300);
  await vi.advanceTimersByTimeAsync(5_000);
  the.isUp = true;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(the.named).toEqual([]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(the.named).toEqual([200, 100]);
});
