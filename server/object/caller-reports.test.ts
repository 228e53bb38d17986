import { expect, test } from "vitest";
import type { ReportedJob } from "../../core/jobs/reports.ts";
import { objectWith } from "../../test/support/object-calls.ts";
import { until } from "../../testing/stack/program.ts";
import type { Change } from "../engine/records.ts";
import { CallerReports } from "./caller-reports.ts";

const KEY = "c0123456789abcdef.";

test("large results that end while a caller's object is slow are not all held in memory, and all ends are reported", async () => {
  const reportedEnds: ReportedJob[][] = [];
  const isFree = Promise.withResolvers<void>();
  const object = {
    "caller.noteReports": async (_key: string, ended: readonly ReportedJob[]) => {
      reportedEnds.push([...ended]);
      await isFree.promise;
      return { done: undefined };
    },
  };
  const objects = { idFromName: () => ({}), get: () => objectWith(object) };
  const reports = new CallerReports({ objects, client: {} as never, namespace: "", durable: async () => {} });
  const end = (n: number): Change => {
    const promise = {
      id: `${KEY}job${n}`,
      state: "resolved",
      tags: { "resonate:target": "poll://any@workers" },
      param: {},
      value: { data: "x".repeat(90_000) },
      createdAt: 0,
      settledAt: 1,
      timeoutAt: 2,
      callbacks: new Set(),
      listeners: new Set(),
    };
    return { kind: "promise", promise } as never;
  };
  reports.onCommit([end(0)]);
  await until("the first report", () => reportedEnds.length === 1);
  reports.onCommit(Array.from({ length: 500 }, (_, n) => end(n + 1)));
  await new Promise((resolve) => setTimeout(resolve));
  isFree.resolve();
  await until("the others", () => reportedEnds.length === 2);
  expect(reportedEnds[1]).toHaveLength(500);
  expect(JSON.stringify(reportedEnds[1]).length).toBeLessThan(6_000_000);
});
