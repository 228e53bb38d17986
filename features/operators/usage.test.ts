/** When operators receive a caller's figures. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { callsOf } from "../../core/resonate/object-calls.ts";
import { ObjectSql } from "../../core/resonate/object-storage.ts";
import { Callers } from "../../functions/objects/callers.ts";
import { createStorage } from "../../testing/stack/object-storage.ts";
import { Figures } from "./caller-figures.ts";

const MINUTE = 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("figures that change within a minute of the last ones are sent when the minute is over", () => {
  const sent: unknown[] = [];
  const operate = async (_call: string, [figure]: unknown[]) => {
    sent.push(figure);
    return { done: undefined };
  };
  const callers = new Callers({ idFromName: () => ({}), get: () => callsOf({ operate }) }, "");
  const alarms: number[] = [];
  const figures = new Figures({
    ...{ callers, sql: new ObjectSql(createStorage()), most: 0, key: () => "ada" },
    jobs: { stored: 0, pending: () => ["job"] },
    hooks: { list: () => [] },
    arm: async () => void alarms.push(figures.nextAt()),
  });
  const start = Date.now();
  figures.onStart();
  vi.setSystemTime(start + 1_000);
  figures.onStart();
  figures.onStart();
  expect(sent).toEqual([expect.objectContaining({ key: "ada", started: 1, running: 1 })]);
  expect(alarms).toEqual([start + MINUTE]);
  vi.setSystemTime(start + MINUTE);
  figures.send();
  expect(sent.slice(1)).toEqual([expect.objectContaining({ started: 2 })]);
  expect(figures.nextAt()).toBe(Infinity);
});
