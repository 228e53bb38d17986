import { describe, expect, test } from "vitest";
import type { Stored } from "../../support/stored.ts";
import { ClientLog } from "../client-log.ts";
import { monthName } from "../names.ts";
import { makePlan, type PlannedJob } from "../plan.ts";
import { reconcile, repeats, undisturbed } from "./reconcile.ts";

test("equal seeds make equal plans, and different seeds make different ones", () => {
  const plan = (seed: number) => makePlan({ seed, seconds: 30, workers: 3, lease: 4_000 });
  expect(plan(1)).toEqual(plan(1));
  expect(plan(1).faults).not.toEqual(plan(2).faults);
  expect(new Set(plan(1).jobs.map(({ kind }) => kind)).size).toBe(5);
});

describe("the comparison", () => {
  const away = (from: number, to: number, process: "worker" | "edge" = "worker") => ({ what: "", process, from, to });

  /** The violations found for a timer that was set at 0 and fired on time after a second, after `change` has altered the evidence. */
  function reckon(change: (job: Stored, log: ClientLog, jobs: Map<string, Stored>) => void): string[] {
    const log = new ClientLog();
    const fires_at = new Date(1_000).toISOString();
    const planned: PlannedJob = { kind: "timer", at: 0, starters: 1, args: { timer_name: "tea", seconds: 1 } };
    Object.assign(log.attempt("timer_tea", planned), { firstSent: 0, lastSent: 0 });
    log.acknowledged("timer_tea", "timer_tea", fires_at);
    const settled = { state: "resolved" as const, value: "complete", createdAt: 0, settledAt: 1_000 };
    const job: Stored = { name: "timer_tea", func: "timer", args: { timer_name: "tea", fires_at }, ...settled };
    const jobs = new Map([[job.name, job]]);
    change(job, log, jobs);
    const violations = reconcile({ log, jobs, requests: [], disruptions: [away(5_000, 6_000)], allowedDelay: 100 });
    return violations.map(({ rule }) => rule);
  }

  test.each<[string, Parameters<typeof reckon>[0]]>([
    ["lost", (job, _journal, jobs) => jobs.delete(job.name)],
    ["lost", (job) => Object.assign(job, { state: "pending", settledAt: undefined })],
    ["invented", (job, _journal, jobs) => jobs.set("timer_b", { ...job, name: "timer_b", args: { ...job.args } })],
    ["invented", (job, _journal, jobs) => jobs.set("timer_tea~2", { ...job, name: "timer_tea~2", func: "other" })],
    ["wrong value", (job) => Object.assign(job, { state: "rejected_canceled" })],
    ["wrong value", (job) => Object.assign(job, { state: "rejected_timedout" })],
    ["changed", (_job, log) => log.ended("timer_tea", { status: "complete", result: "another" })],
    ["early", (job) => Object.assign(job, { settledAt: 999 })],
    ["late", (job) => Object.assign(job, { settledAt: 1_101 })],
    ["not told", (_job, log) => log.stillRunning.push({ name: "timer_tea", at: 1_101 })],
  ])("finds a violation of the kind: %s", (rule, change) => {
    expect(reckon(change)).toContain(rule);
  });

  test("finds nothing if nothing is wrong, or if a disruption explains the deviation", () => {
    expect(reckon(() => {})).toEqual([]);
    expect(reckon((job) => Object.assign(job, { args: { ...job.args }, settledAt: 1_100 }))).toEqual([]);
    expect(reckon((_job, log) => log.ended("timer_tea", { status: "complete", result: "complete" }))).toEqual([]);
  });

  test("accepts a month that was cancelled with its range, unless a client wanted the month or no range of it was cancelled", () => {
    const at = { latitude: 47.5, longitude: -122.3 };
    const month = { ...at, year: 2012, month: 6 };
    const range = { ...at, from: "2012-06", to: "2012-06" };
    const ended = { state: "rejected_canceled" as const, value: undefined, createdAt: 0, settledAt: 1_000 };
    const reckoned = (isCancelled: boolean, isWanted: boolean) =>
      reckon((_job, log, jobs) => {
        const failed = { state: "rejected" as const, value: new Error("declined") };
        jobs.set("range", { ...ended, ...(!isCancelled && failed), name: "range", func: "weather_range", args: range });
        const wanted = log.attempt("range", { kind: "question", at: 0, args: range, reply: "cancel", after: 0 });
        wanted.cancel = { name: "range", outcome: isCancelled ? "cancelled" : "already_finished" };
        wanted.replies.add("cancel");
        const name = monthName(month);
        jobs.set(name, { ...ended, name, func: "weather_data", args: month });
        if (isWanted) log.attempt(name, { kind: "gathering", at: 0, starters: 1, args: month });
      });
    expect(reckoned(true, false)).toEqual([]);
    expect(reckoned(true, true)).toEqual(["wrong value"]);
    expect(reckoned(false, false)).toEqual(["wrong value"]);
  });

  test("excuses one repeated request for each time that a worker was down in between, and no other", () => {
    expect(repeats([10], [])).toBe(0);
    expect(repeats([10, 20], [])).toBe(1);
    expect(repeats([10, 20], [away(12, 15)])).toBe(0);
    expect(repeats([10, 20], [away(5, 30)])).toBe(0);
    expect(repeats([10, 20], [away(30, 40)])).toBe(1);
    expect(repeats([10, 20], [away(12, 15, "edge")])).toBe(1);
    expect(repeats([8_000, 9_000], [away(1_000, 7_000)])).toBe(0); // it is back, but does not know yet what it has lost
    expect(repeats([18_000, 19_000], [away(1_000, 7_000)])).toBe(1);
    expect(repeats([10, 20, 30], [away(12, 28)])).toBe(1);
    expect(repeats([10, 20, 30], [away(12, 15), away(22, 25)])).toBe(0);
  });

  test("counts as delay only the time in which nothing was disrupted", () => {
    expect(undisturbed(100, 200, [])).toBe(100);
    expect(undisturbed(100, 200, [away(0, 120), away(110, 130), away(190, 300)])).toBe(60);
    expect(undisturbed(100, 200, [away(0, 300)])).toBe(0);
  });
});
