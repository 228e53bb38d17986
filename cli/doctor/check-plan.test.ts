import { expect, test } from "vitest";
import { judge } from "./check-plan.ts";

const HOUR = 3_600_000;
const quiet = { requests: 100, alarms: 10, rows: { written: 290 }, awake: HOUR, size: 2_000_000 };

test.each([
  [
    "an object with few requests is far from the limits",
    quiet,
    "ok",
    "6960 and 2640 a day, 7 % of what the free plan has",
  ],
  [
    "the duration of an object that has not slept is reported",
    quiet,
    "ok",
    "it has not slept (a connected worker keeps it awake), which takes 10800 of the 13000 GB-s a day",
  ],
  ["an object that has just woken gets no estimate", { ...quiet, awake: 5_000 }, "ok", "too short for an estimate"],
  [
    "many written rows cause a warning",
    { ...quiet, rows: { written: 3_000 } },
    "warning",
    "72000 and 2640 a day, 72 %",
  ],
  ["alarms count as requests", { ...quiet, alarms: 4_000 }, "warning", "6960 and 98400 a day, 98 %"],
])("%s", (_what, usage, status, detail) => {
  expect(judge(usage)).toContainEqual(
    expect.objectContaining({ check: "plan", status, detail: expect.stringContaining(detail) }),
  );
});

test.each([
  [2e6, "ok", "2.0 MB of the 10 GB"],
  [4e9, "warning", "the free plan has 5 GB"],
  [8e9, "warning", "8000 MB of the 10 GB of an object"],
])("a size of %d bytes is judged %s", (size, status, detail) => {
  expect(judge({ ...quiet, size })[0]).toMatchObject({ status, detail: expect.stringContaining(detail) });
});
