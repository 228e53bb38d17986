import { describe, expect, test, vi } from "vitest";
import { BROKEN_MONTHS } from "./broken/broken-months.ts";
import { report } from "./check/report.ts";
import { makePlan, type Plan, type PlannedJob } from "./plan.ts";
import { runChaos } from "./run.ts";

vi.setConfig({ testTimeout: 90_000 });

const SEED = 24;
const lease = 4_000;

describe.concurrent("a run", () => {
  test("with kills, pauses and a failing archive loses, repeats, changes, invents or falsifies no job", async () => {
    const plan = makePlan({ seed: SEED, seconds: 6, workers: 2, lease });
    const outcome = await runChaos(plan, { workers: 2, lease, quiet: 45_000 });
    console.log(`chaos, seed ${SEED}\n${report(outcome)}`);
    expect(outcome.violations).toEqual([]);
    expect(outcome.faults.length).toBeGreaterThan(5);
    expect(outcome.jobs.size).toBeGreaterThan(90);
  });

  test("with a faulty worker finds every fault and nothing else", async () => {
    const gatherings = Array.from({ length: 12 }, (_, i): PlannedJob => {
      const args = { latitude: 47.6, longitude: -122.3, year: 2013, month: i + 1 };
      return { kind: "gathering", at: 0, starters: 1, args };
    });
    const timer: PlannedJob = { kind: "timer", at: 0, starters: 1, args: { timer_name: "tea", seconds: 20 } };
    const plan: Plan = { seed: 0, duration: 1_000, jobs: [...gatherings, timer], faults: [] };
    const worker = "test/chaos/broken/broken-worker.ts";
    // Long enough that a short pause of the machine does not look like a faulty worker.
    const env = { LEASE_SECONDS: "30", UPSTREAM_TIMEOUT_SECONDS: "30" };
    const { violations, jobs } = await runChaos(plan, { workers: 1, lease, quiet: 12_000, worker, env });
    const month = (number: number) => `weather_data_47.6_-122.3_2013_${number}`;
    expect(jobs.size).toBe(13);
    expect(Object.fromEntries(violations.map(({ job, rule }) => [job, rule]))).toEqual({
      [month(BROKEN_MONTHS.settlesTwice)]: "wrong value",
      [month(BROKEN_MONTHS.drops)]: "lost",
      [month(BROKEN_MONTHS.fetchesAgain)]: "upstream",
      [month(BROKEN_MONTHS.changes)]: "wrong value",
      timer_tea: "early",
    });
  });
});
