import { describe, expect, test, vi } from "vitest";
import { BROKEN_MONTHS } from "./broken.ts";
import { makePlan, type Plan, type PlannedJob } from "./plan.ts";
import { repeats, undisturbed } from "./reconcile.ts";
import { report } from "./report.ts";
import { runChaos } from "./run.ts";

vi.setConfig({ testTimeout: 90_000 });

const SEED = 20;
const lease = 4_000;

describe.concurrent("a run", () => {
  test("of kills, pauses and a failing archive: no job is lost, repeated, changed, wrong, early or invented", async () => {
    const plan = makePlan({ seed: SEED, seconds: 10, workers: 2, lease });
    const outcome = await runChaos(plan, { workers: 2, lease, quiet: 45_000 });
    console.log(`chaos, seed ${SEED}\n${report(outcome)}`);
    expect(outcome.violations).toEqual([]);
    expect(outcome.faults.length).toBeGreaterThan(5);
    expect(outcome.jobs.size).toBeGreaterThan(150);
  });

  test("of a worker that does wrong: each wrong is found, and nothing else", async () => {
    const gatherings = Array.from({ length: 12 }, (_, i): PlannedJob => {
      const args = { latitude: 47.6, longitude: -122.3, year: 2013, month: i + 1 };
      return { kind: "gathering", at: 0, starters: 1, args };
    });
    const timer: PlannedJob = { kind: "timer", at: 0, starters: 1, args: { timer_name: "tea", seconds: 20 } };
    const plan: Plan = { seed: 0, duration: 1_000, jobs: [...gatherings, timer], faults: [] };
    const worker = "test/chaos/broken-worker.ts";
    const { violations, jobs } = await runChaos(plan, { workers: 1, lease, quiet: 4_000, worker });
    const month = (number: number) => `weather_data_47.6_-122.3_2013_${number}`;
    expect(jobs.size).toBe(13);
    expect(Object.fromEntries(violations.map(({ job, rule }) => [job, rule]))).toEqual({
      [month(BROKEN_MONTHS.settlesTwice)]: "wrong value",
      [month(BROKEN_MONTHS.drops)]: "lost",
      [month(BROKEN_MONTHS.fetchesTwice)]: "upstream",
      [month(BROKEN_MONTHS.changes)]: "wrong value",
      timer_tea: "early",
    });
  });
});

test("a plan is the same for the same seed, and another for another", () => {
  const plan = (seed: number) => makePlan({ seed, seconds: 30, workers: 3, lease });
  expect(plan(1)).toEqual(plan(1));
  expect(plan(1).faults).not.toEqual(plan(2).faults);
  expect(new Set(plan(1).jobs.map(({ kind }) => kind)).size).toBe(5);
});

describe("the reckoning", () => {
  const away = (from: number, to: number, process: "worker" | "edge" = "worker") => ({ what: "", process, from, to });

  test("excuses a second request for each time a worker was away between the two, and no other", () => {
    expect(repeats([10], [])).toBe(0);
    expect(repeats([10, 20], [])).toBe(1);
    expect(repeats([10, 20], [away(12, 15)])).toBe(0);
    expect(repeats([10, 20], [away(5, 30)])).toBe(0);
    expect(repeats([10, 20], [away(30, 40)])).toBe(1);
    expect(repeats([10, 20], [away(12, 15, "edge")])).toBe(1);
    expect(repeats([10, 20, 30], [away(12, 28)])).toBe(1);
    expect(repeats([10, 20, 30], [away(12, 15), away(22, 25)])).toBe(0);
  });

  test("counts as delay only the time in which nothing was disrupted", () => {
    expect(undisturbed(100, 200, [])).toBe(100);
    expect(undisturbed(100, 200, [away(0, 120), away(110, 130), away(190, 300)])).toBe(60);
    expect(undisturbed(100, 200, [away(0, 300)])).toBe(0);
  });
});
