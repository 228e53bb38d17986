/** What the table of a caller's jobs reads: every list uses an index, however many jobs there are. */

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Job } from "../../core/author/job.ts";
import type { ListQuery } from "../../core/jobs/caller-record.ts";
import { encodeValue } from "../../core/resonate/codec.ts";
import type { ObjectStorage } from "../../core/resonate/object-storage.ts";
import { check } from "../../core/tools/arguments.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { timer } from "../../tools/timer/timer.ts";
import { listJobs } from "../calls/list.ts";
import { JobTable, RECORD_TABLES } from "./job-table.ts";

const KEY = "c0123456789abcdef.";

test("every list follows an index from its cursor on", () => {
  const db = new DatabaseSync(":memory:");
  const plans: string[] = [];
  const storage: ObjectStorage = {
    sql: {
      exec(statement, ...values) {
        if (values.length === 0 && statement.includes(";")) db.exec(statement);
        if (statement.startsWith("SELECT id, state, started_at"))
          plans.push(
            ...db
              .prepare(`EXPLAIN QUERY PLAN ${statement}`)
              .all(...values)
              .map(({ detail }) => String(detail)),
          );
        const isScript = values.length === 0 && statement.includes(";");
        return { toArray: () => (isScript ? [] : (db.prepare(statement).all(...values) as never)) };
      },
    },
    transactionSync: (work) => work(),
    getAlarm: async () => null,
    setAlarm: async () => {},
  };
  const jobs = new JobTable(openTables([RECORD_TABLES], storage));
  const after = { startedAt: 1, id: "forged" };
  for (const kind of [undefined, "timer"])
    for (const state of [undefined, "pending" as const, "rejected" as const])
      for (const cursor of [undefined, after]) jobs.list({ kind, state, after: cursor, limit: 20 });
  expect(plans.length).toBeGreaterThanOrEqual(16);
  const conditions =
    /^SEARCH jobs USING (COVERING )?INDEX jobs_\w+ \((kind=\? AND )?(state=\? AND )?\(started_at,id\)<\(\?,\?\)\)$/;
  expect(plans.filter((plan) => !conditions.test(plan))).toEqual([]);
  // The index covers the filters, so they are not checked row by row.
  expect(plans.filter((plan) => plan.includes("kind=? AND state=?")).length).toBe(6);
});

test("a job that is started again after the retention takes its own bytes, and not those of the earlier one", () => {
  const table = new JobTable(openTables([RECORD_TABLES]));
  const job = { id: "timer_a", kind: "timer", due: 1e15, period: "", count: 0, labels: [] };
  const start = (startedAt: number) =>
    table.reserve(
      { ...job, state: "pending", startedAt, settledAt: null, bytes: 1_000 },
      { jobs: 0, bytes: 0 },
      startedAt,
    );
  start(1);
  table.note({ ...job, state: "resolved", startedAt: 1, settledAt: 2, bytes: 9_000_000 }, 3);
  expect(table.stored).toBe(9_000_000);
  start(4);
  expect(table.stored).toBe(1_000);
});

test("where ends are reported, a list by a status has none of the jobs that run, unless they are due for a look", () => {
  const table = new JobTable(openTables([RECORD_TABLES]));
  const reserve = (id: string, due: number) => {
    const job = { id, kind: "timer", due, period: "", count: 0, labels: [], bytes: 0, settledAt: null };
    table.reserve({ ...job, state: "pending", startedAt: 1 }, { jobs: 0, bytes: 0 }, 1);
  };
  for (let n = 0; n < 200; n++) reserve(`timer_${n}`, Date.now() + 3_600_000);
  reserve("timer_overdue", Date.now() - 60_000);
  const list = (areEndsReported: boolean, kind?: string) =>
    table.list({ kind, state: "rejected", limit: 300 }, { areEndsReported }).map(({ id }) => id);
  for (const kind of [undefined, "timer"]) {
    expect(list(true, kind)).toEqual(["timer_overdue"]);
    expect(list(false, kind).length).toBe(201);
  }
});

/** A caller with 25,000 timers, of which only `timer_needle`, one of the oldest, still has its promise. */
async function startMany() {
  const table = new JobTable(openTables([RECORD_TABLES]));
  const sim = new Simulation({ now: () => Date.now() });
  const COUNT = 25_000;
  const startedJob = { kind: "timer", settledAt: null, due: 1e15, period: "", count: 0, bytes: 0 };
  const nameOf = (n: number) => (n === 10 ? "timer_needle" : `timer_${n}`);
  const most = { jobs: 0, bytes: 0 };
  table.transaction(() => {
    for (let n = 0; n < COUNT; n++)
      table.reserve({ ...startedJob, id: KEY + nameOf(n), startedAt: n, state: "pending", labels: [] }, most, n);
  });
  const args = { timer_name: "needle", fires_at: new Date(Date.now() + 3_600_000).toISOString() };
  const tags = { "durable-mcp:kind": "timer", "resonate:target": "poll://any@workers" };
  const param = encodeValue({ func: "timer", args: [args], version: 1 });
  await sim.send("promise.create", { id: `${KEY}timer_needle`, timeoutAt: 1e15, param, tags });
  const asked: (number | undefined)[] = [];
  const record = {
    list: async (query: ListQuery) => {
      asked.push(query.after?.startedAt);
      return table.list(query, { nameAt: KEY.length });
    },
    note: async () => {},
    stored: async () => 0,
  };
  const call = async ({ kind, data }: { kind: string; data: object }) => {
    const answer = await sim.send(kind as never, data as never);
    return answer.status === 200 ? (answer.data as { promise: unknown }).promise : undefined;
  };
  const endpoint = { url: "http://resonate", group: "workers", namespace: "" };
  const store = jobStore(endpoint, [timer as Job], {
    by: { key: KEY, requestId: "" },
    records: { limits: { jobs: 0, bytes: 0 }, of: () => record as never },
    client: { call, readsMany: () => false } as never,
  });
  const list = async (given: object) => {
    const context = { store, signal: AbortSignal.timeout(60_000) };
    const { structuredContent } = await listJobs([timer as Job]).call(given, context as never);
    return structuredContent as { jobs: { job_name: string }[]; next_cursor?: string };
  };
  return { asked, list };
}

test("a search goes through 2,000 jobs per call and continues from its cursor, also with a status", async () => {
  const { asked, list } = await startMany();
  for (const status of [undefined, "running"]) {
    const found: string[] = [];
    const calls: number[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined;) {
      asked.length = 0;
      const answer = await list({ search: "NEEDLE", status, ...(cursor && { cursor }) });
      found.push(...answer.jobs.map(({ job_name }) => job_name));
      calls.push(asked.length);
      cursor = answer.next_cursor;
    }
    expect(found).toEqual(["timer_needle"]);
    expect(calls.length).toBe(13);
    expect(Math.max(...calls)).toBe(1);
  }
});

test("a search for up to 8 different words is accepted, and one for more is refused", async () => {
  const { input } = listJobs([timer as Job]);
  expect(await check(input, { search: `${"timer ".repeat(25)}a b c d e f g` })).toHaveProperty("args");
  const problems = [expect.stringContaining("up to 8 words")];
  expect(await check(input, { search: "a b c d e f g h i" })).toEqual({ problems });
});

test("a search whose jobs have another status than the wanted one asks for few pages, however few jobs it lists", async () => {
  const { asked, list } = await startMany();
  expect(await list({ search: "timer", status: "complete", limit: 1 })).toMatchObject({ jobs: [] });
  expect(asked.length).toBeLessThanOrEqual(10);
});
