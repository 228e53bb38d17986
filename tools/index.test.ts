import { describe, expect, test } from "vitest";
import { tools } from "./index.ts";
import { runs } from "./runs.ts";

const jobs = [...new Set(tools.flatMap(({ job }) => job ?? []))];

describe("a name belongs to", () => {
  test.each([
    ["weather_data_47.6_-122.3_2013_5", "weather_data"],
    ["weather_range_47.6_-122.3_2013-05_2013-06", "weather_range"],
    ["weather_range_47.6_-122.3_2013-05_2013-06_UTC@2013-06-20", "weather_range"],
    ["timer_tea", "timer"],
    ["timer_weather_data_47.6_-122.3_2013_5", "timer"],
    [`timer_${"x".repeat(494)}`, "timer"],
    [`timer_${"x".repeat(495)}`, undefined],
    ["timer_", undefined],
    ["timer_a:0", undefined],
    ["timer_a~2", undefined],
    ["timer_a\nb", undefined],
    ["timer_\ud800", undefined],
    ["weather_data_47.6_-122.3_2013_5:0", undefined],
    ["weather_data_47.6_-122.3_2013_5~2", undefined],
    ["weather_data_47.6_-122.3_2013_5_+05:00", undefined],
    ["weather_data", undefined],
    ["weather_47.6", undefined],
    ["", undefined],
    ["order-17", undefined],
  ])("%j: %s", (name, kind) => {
    expect(jobs.filter((job) => job.owns(name)).map((job) => job.kind)).toEqual(kind ? [kind] : []);
  });
});

test("every job that a tool starts has code, and there is no other code", () => {
  expect(new Set(runs.map(({ job }) => job))).toEqual(new Set(jobs));
  for (const { job, versionOf } of runs) expect(versionOf(job.version)).toBeDefined();
});
