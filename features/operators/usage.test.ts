/** When operators receive a caller's usage. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ObjectSql } from "../../core/resonate/object-storage.ts";
import { createStorage } from "../../test/support/object-storage.ts";
import { CallerUsageReporter } from "./usage.ts";

const MINUTE = 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("usage that changes within a minute of the last report is sent when the minute is over", async () => {
  const sent: unknown[] = [];
  const alarms: number[] = [];
  const reporter = new CallerUsageReporter({
    host: { sql: new ObjectSql(createStorage()), arm: async () => void alarms.push(reporter.nextAt()) },
    record: { key: "ada", jobs: { stored: 0, pending: () => ["job"] } },
    operators: () => ({ usage: async (usage) => void sent.push(usage) }),
    subscriptions: () => [],
    maxBytes: 0,
  });
  const start = Date.now();
  const begin = async () => {
    reporter.onStart();
    await Promise.resolve();
  };
  await begin();
  vi.setSystemTime(start + 1_000);
  await begin();
  await begin();
  expect(sent).toEqual([expect.objectContaining({ key: "ada", started: 1, running: 1 })]);
  expect(alarms).toEqual([start + MINUTE]);
  vi.setSystemTime(start + MINUTE);
  reporter.run();
  expect(sent.slice(1)).toEqual([expect.objectContaining({ started: 2 })]);
  expect(reporter.nextAt()).toBe(Infinity);
});
