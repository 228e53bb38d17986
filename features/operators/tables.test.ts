/** The counts that operators see stay few, however many jobs there are. */
import { expect, test, vi } from "vitest";
import { MAX_NAMED_JOBS, type WaitState, type WorkerReport } from "../../core/jobs/worker-report.ts";
import { createStorage } from "../../test/support/object-storage.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { OPERATE_TABLES, OperateTables } from "./tables.ts";

const [MINUTE, DAY] = [60_000, 86_400_000];
const NOW = Date.UTC(2026, 10, 20, 12, 30, 30);

let n = 0;
const report = (more: Partial<WorkerReport> = {}): WorkerReport => ({
  worker: "w",
  group: "workers",
  connected: true,
  form: 1,
  kinds: { tea: 1 },
  slots: { running: 1, waiting: 0, most: 100 },
  n: ++n,
  counts: [],
  failed: [],
  waits: [],
  slowest: [],
  ...more,
});
const failed = (job: string, reason = "no water") => ({ job, kind: "tea", reason, at: Date.now() });

test("a million jobs of a week are added up exactly, in few rows", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  const per = 100;
  let all = 0;
  for (let at = NOW - 7 * DAY + MINUTE; at <= NOW; at += MINUTE) {
    tables.count("tea", "complete", per, at);
    tables.count("tea", "failed", 1, at);
    tables.count("tea", "failed: no water", 1, at);
    all += per;
  }
  expect(all).toBeGreaterThan(1_000_000);
  const [{ rows } = {}] = tables.all("SELECT count(*) AS rows FROM counts");
  expect(Number(rows)).toBeLessThan(1_200);
  const week = tables.overview("week", NOW);
  expect(week.kinds).toEqual([{ kind: "tea", complete: all, failed: all / per, before: {} }]);
  expect(week.groups).toEqual([expect.objectContaining({ kind: "tea", reason: "no water", count: all / per })]);
  expect(week.chart.ended.reduce((a, b) => a + b, 0)).toBe(all);
  expect(tables.counts("week", NOW).rows.length).toBeLessThan(600);
  const hour = tables.overview("hour", NOW);
  expect(hour.kinds[0]?.complete).toBe(61 * per);
  // When hours are too old, only days are left.
  const later = NOW + 17 * DAY;
  tables.count("tea", "complete", 1, later);
  const sums = tables.all("SELECT size, sum(n) AS n FROM counts WHERE name = 'complete' GROUP BY size ORDER BY size");
  expect(sums).toEqual([
    { size: MINUTE, n: 1 },
    { size: DAY, n: all },
  ]);
});

test("each kind is compared with the same time a day or a week earlier, even if it has no jobs now", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  for (let at = NOW - 15 * DAY; at <= NOW; at += 10 * MINUTE) {
    const isBefore = at <= NOW - DAY / 2;
    tables.count("tea", "started", isBefore ? 20 : 30, at);
    if (isBefore) tables.count("milk", "failed", 10, at);
  }
  const kindsOf = (span: "hour" | "day" | "week") => tables.overview(span, NOW).kinds;
  const about = (n: number) => (given: number) => Math.abs(given - n) <= n / 50;
  for (const [span, minutes] of [
    ["hour", 60],
    ["day", 24 * 60],
    ["week", 7 * 24 * 60],
  ] as const) {
    const [milk, tea] = kindsOf(span);
    expect([milk?.kind, tea?.kind]).toEqual(["milk", "tea"]);
    expect(tea?.before.started).toSatisfy(about(2 * minutes));
    expect(milk?.before.failed).toSatisfy(about(minutes));
  }
  expect(kindsOf("hour")[1]?.started).toBe(210);
  expect(kindsOf("hour")[0]).not.toHaveProperty("failed");
});

test("a report that is sent again counts once", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  const sent = report({
    counts: [
      ["tea", "failed", 2],
      ["tea", "failed: no water", 2],
    ],
    failed: [failed("tea_1"), failed("tea_2")],
  });
  tables.report(sent, Date.now());
  tables.report(sent, Date.now());
  const { kinds, groups, workers } = tables.overview("hour", Date.now());
  expect(kinds).toEqual([{ kind: "tea", failed: 2, before: {} }]);
  expect(groups).toEqual([expect.objectContaining({ reason: "no water", count: 2 })]);
  expect(workers).toEqual([expect.objectContaining({ worker: "w", kinds: { tea: 1 } })]);
});

test("the storage stays bounded when all reasons differ and more jobs fail than are kept", () => {
  vi.setSystemTime?.(NOW);
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  for (let i = 0; i < 60; i++) {
    const names = Array.from({ length: MAX_NAMED_JOBS }, (_, j) => failed(`tea_${i}_${j}`, `broken ${i} ${j}\nmore`));
    const counts = names.map(({ reason }): [string, string, number] => ["tea", `failed: ${reason.split("\n")[0]}`, 1]);
    tables.report(report({ counts, failed: names }), Date.now());
  }
  vi.useRealTimers();
  const { groups } = tables.overview("hour", NOW);
  expect(groups.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(11_000);
  expect(groups.length).toBeLessThanOrEqual(50);
  expect(tables.jobs({}, 10)).toMatchObject({ count: 10_000 });
  expect(tables.jobs({ reason: "broken 59 1" }, 10).jobs).toEqual([expect.objectContaining({ job: "tea_59_1" })]);
});

test("a waiting job is listed since the begin of its wait, until it no longer waits", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  const waits = (state?: "blocked" | "sleeping") => [
    { job: "tea_1", kind: "tea", ...(state && { state }), says: "why" },
  ];
  tables.report(report({ waits: waits("blocked") }), 1_000);
  tables.report(report({ waits: waits("blocked") }), 2_000);
  expect(tables.overview("hour", NOW).waits).toEqual([{ kind: "tea", state: "blocked", n: 1, since: 1_000 }]);
  tables.report(report({ waits: waits("sleeping") }), 3_000);
  expect(tables.overview("hour", NOW).waits).toEqual([{ kind: "tea", state: "sleeping", n: 1, since: 3_000 }]);
  tables.report(report({ waits: waits() }), 4_000);
  expect(tables.overview("hour", NOW).waits).toEqual([]);
});

test("the list of waiting jobs stays bounded, sleeping jobs leave room for failing ones and these for blocked ones, and known jobs change", () => {
  const storage = createStorage();
  const said: string[] = [];
  const exec = storage.sql.exec.bind(storage.sql);
  storage.sql.exec = (statement, ...values) => {
    said.push(statement);
    return exec(statement, ...values);
  };
  const tables = new OperateTables(openTables([OPERATE_TABLES], storage));
  const tell = (state: WaitState | undefined, from: number, to: number) => {
    for (let i = from; i < to; i += MAX_NAMED_JOBS) {
      const jobs = Array.from({ length: Math.min(MAX_NAMED_JOBS, to - i) }, (_, j) => `tea_${i + j}`);
      tables.report(report({ waits: jobs.map((job) => ({ job, kind: "tea", ...(state && { state }) })) }), NOW);
    }
  };
  const numbers = () => Object.fromEntries(tables.overview("hour", NOW).waits.map(({ state, n }) => [state, n]));
  tell("sleeping", 0, 3_000);
  tell("job", 3_000, 6_000);
  expect([numbers(), tables.overview("hour", NOW).waits_complete]).toEqual([{ sleeping: 3_000, job: 2_000 }, false]);
  tell("job", 0, 400);
  expect(numbers()).toEqual({ sleeping: 2_600, job: 2_400 });
  tell("failing", 10_000, 13_000);
  tell("answer", 13_000, 16_000);
  expect(numbers()).toEqual({ sleeping: 2_600, job: 2_400, failing: 3_000, answer: 2_000 });
  tell("blocked", 20_000, 26_000);
  expect(numbers()).toEqual({ sleeping: 2_600, job: 2_400, failing: 3_000, answer: 2_000, blocked: 5_000 });
  tell(undefined, 10_000, 26_000);
  tell("sleeping", 30_000, 30_200);
  expect(numbers()).toEqual({ sleeping: 2_600, job: 2_400 });
  tell(undefined, 0, 1_000);
  tell(undefined, 0, 1_000); // It is not counted twice.
  tell("sleeping", 30_000, 32_000);
  expect(numbers()).toEqual({ sleeping: 3_000, job: 2_000 });
  tables.report(report({ waits: [{ job: "milk_1", kind: "milk", state: "worker", says: "no function" }] }), NOW - DAY);
  expect(numbers()).toMatchObject({ worker: 1 });
  // Only the first of more than a hundred reports reads the whole list.
  expect(said.filter((statement) => /count\(\*\).* FROM waits$/.test(statement))).toHaveLength(1);
});

test("jobs that failed in an outage and sleep again leave the room of those that fail now", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  const tell = (state: WaitState, from: number, to: number) => {
    const jobs = Array.from({ length: to - from }, (_, i) => `tea_${from + i}`);
    tables.report(report({ waits: jobs.map((job) => ({ job, kind: "tea", state })) }), NOW);
  };
  for (const state of ["sleeping", "failing", "sleeping"] as const) tell(state, 0, 11_000);
  tell("failing", 20_000, 20_500);
  tell("answer", 21_000, 21_500);
  const found = Object.fromEntries(tables.overview("hour", NOW).waits.map(({ state, n }) => [state, n]));
  expect(found).toEqual({ sleeping: 5_000, failing: 500, answer: 500 });
});

test("calls of callers make room for later ones, and actions of operators stay", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  tables.audit.note("op", "retry", {});
  tables.audit.noteCall("ada", "cancel_job", { jobs: "[1]" });
  tables.all("UPDATE sqlite_sequence SET seq = 500000 WHERE name = 'audit'");
  tables.audit.noteCall("ada", "cancel_job", { jobs: "[2]" });
  expect(tables.audit.page({}).map(({ what, about }) => [what, about.jobs])).toEqual([
    ["cancel_job", "[2]"],
    ["retry", undefined],
  ]);
});

test("the audit log continues from a reader's position", () => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  for (const what of ["a", "b", "c"]) tables.audit.note("ada", what, { what });
  expect(tables.audit.page({ after: 1 }).map(({ what }) => what)).toEqual(["b", "c"]);
  expect(tables.audit.page({ before: 3 }).map(({ what }) => what)).toEqual(["b", "a"]);
});
