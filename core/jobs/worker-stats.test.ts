/** Reports name all jobs, in turns if there are many. */
import { expect, test } from "vitest";
import { MAX_NAMED_JOBS, type WorkerReport } from "./worker-report.ts";
import { WorkerStats } from "./worker-stats.ts";

const state = { worker: "w", group: "workers", connected: true, form: 1, kinds: {}, running: 0, most: 1 };

/** Takes reports until nothing is left. */
function reportsOf(stats: WorkerStats): WorkerReport[] {
  const reports: WorkerReport[] = [];
  while (stats.hasNews) reports.push(stats.takeReport(state));
  return reports;
}

const names = (many: number) => Array.from({ length: many }, (_, i) => `tea_${i}`);
const failed = (job: string) => ({ job, kind: "tea", outcome: "failed", ms: 1, reason: "no water" }) as const;

test("all of 1,000 failed jobs are named, in several reports, and counted once", () => {
  const stats = new WorkerStats(() => {});
  for (const job of names(1_000)) stats.ended(failed(job));
  const reports = reportsOf(stats);
  expect(reports.flatMap((report) => report.failed.map(({ job }) => job))).toEqual(names(1_000));
  expect(Math.max(...reports.map((report) => report.failed.length))).toBe(MAX_NAMED_JOBS);
  expect(reports.flatMap(({ counts }) => counts)).toContainEqual(["tea", "failed", 1_000]);
});

test("of too many failed jobs, the newest 10,000 are named", () => {
  const stats = new WorkerStats(() => {});
  for (const job of names(10_100)) stats.ended(failed(job));
  const named = reportsOf(stats).flatMap((report) => report.failed.map(({ job }) => job));
  expect(named).toEqual(names(10_100).slice(100));
});

test("all of 1,000 waiting jobs are named, and no longer wait when they have ended at once", () => {
  const stats = new WorkerStats(() => {});
  for (const job of names(1_000)) stats.waits({ job, kind: "tea", state: "sleeping" });
  const waiting = reportsOf(stats).flatMap(({ waits }) => waits.map(({ job, state }) => [job, state]));
  expect(waiting).toEqual(names(1_000).map((job) => [job, "sleeping"]));
  for (const job of names(1_000)) stats.ended({ job, kind: "tea", outcome: "complete", ms: 1 });
  const left = reportsOf(stats).flatMap(({ waits }) => waits.map(({ job, state }) => [job, state]));
  expect(left).toEqual(names(1_000).map((job) => [job, undefined]));
});

test("a job whose state changes each time is reported in its turn, with its last state", () => {
  const stats = new WorkerStats(() => {});
  for (const job of names(MAX_NAMED_JOBS + 1)) stats.waits({ job, kind: "tea", state: "sleeping" });
  stats.waits({ job: "tea_0", kind: "tea", state: "failing" });
  expect(stats.takeReport(state).waits[0]).toMatchObject({ job: "tea_0", state: "failing" });
  expect(stats.takeReport(state).waits).toEqual([{ job: `tea_${MAX_NAMED_JOBS}`, kind: "tea", state: "sleeping" }]);
});

test("the end of a cancelled job is reported, though another worker may have reported its wait", () => {
  const stats = new WorkerStats(() => {});
  stats.ended({ job: "tea_1", kind: "tea", outcome: "cancelled", ms: 1 });
  expect(stats.takeReport(state).waits).toEqual([{ job: "tea_1", kind: "tea" }]);
});

test("the news of a runner is taken and passed on whole", () => {
  const [runner, server] = [new WorkerStats(() => {}), new WorkerStats(() => {})];
  for (const job of names(1_000)) runner.ended(failed(job));
  for (const job of names(1_000)) runner.waits({ job, kind: "tea", state: "blocked" });
  server.add(runner.takeNews());
  expect(runner.hasNews).toBe(false);
  const reports = reportsOf(server);
  expect(reports.flatMap((report) => report.failed)).toHaveLength(1_000);
  expect(reports.flatMap(({ waits }) => waits)).toHaveLength(1_000);
});
