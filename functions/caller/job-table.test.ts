/** What the table of a caller's jobs reads: an index for each list, however many jobs there are. */
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { JobTable } from "./job-table.ts";
import type { CallerStorage } from "./storage.ts";

test("every list goes along an index, from its cursor on", () => {
  const db = new DatabaseSync(":memory:");
  const plans: string[] = [];
  const storage: CallerStorage = {
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
  const jobs = new JobTable(storage);
  const after = { startedAt: 1, id: "forged" };
  for (const kind of [undefined, "timer"])
    for (const state of [undefined, "pending" as const, "rejected" as const])
      for (const cursor of [undefined, after]) jobs.list({ kind, state, after: cursor, limit: 20 });
  expect(plans.length).toBeGreaterThanOrEqual(16);
  const conditions =
    /^SEARCH jobs USING (COVERING )?INDEX jobs_\w+ \((kind=\? AND )?(state=\? AND )?\(started_at,id\)<\(\?,\?\)\)$/;
  expect(plans.filter((plan) => !conditions.test(plan))).toEqual([]);
  // A filter is a part of the index, and not looked up in each row.
  expect(plans.filter((plan) => plan.includes("kind=? AND state=?")).length).toBe(6);
});
