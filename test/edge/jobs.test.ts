import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isoDate,
  JOBS,
  monthAvailability,
  monthBounds,
  monthsOf,
  range,
  splitGeneration,
  timer,
  weather,
  withGeneration,
} from "../../functions/jobs/index.ts";

const MONTH = { latitude: 53.5, longitude: -113.5, year: 2013, month: 5 };
const at = (day: string) => Date.parse(`${day}T12:00:00Z`);

describe("a gathering's name", () => {
  test.each([
    [{}, "weather_data_53.5_-113.5_2013_5"],
    [{ latitude: 53.0, longitude: 7 }, "weather_data_53_7_2013_5"],
    [{ latitude: -0, longitude: -0 }, "weather_data_0_0_2013_5"],
    [{ latitude: 0.1 + 0.2 }, "weather_data_0.30000000000000004_-113.5_2013_5"],
    [{ latitude: 1e-7 }, "weather_data_1e-7_-113.5_2013_5"],
    [{ month: 12 }, "weather_data_53.5_-113.5_2013_12"],
    [{ timezone: "America/Edmonton" }, "weather_data_53.5_-113.5_2013_5_America/Edmonton"],
    [{ timezone: "Etc/GMT+7" }, "weather_data_53.5_-113.5_2013_5_Etc/GMT+7"],
    [{ requested_on: "2013-05-20" }, "weather_data_53.5_-113.5_2013_5@2013-05-20"],
    [
      { timezone: "America/Argentina/Buenos_Aires", requested_on: "2013-05-20" },
      "weather_data_53.5_-113.5_2013_5_America/Argentina/Buenos_Aires@2013-05-20",
    ],
  ])("%j", (args, name) => {
    expect(weather.name({ ...MONTH, ...args })).toBe(name);
  });

  test("is the same for the same number, another for another, and its own, whatever the numbers", () => {
    const latitude = fc.double({ min: -90, max: 90, noNaN: true });
    const longitude = fc.double({ min: -180, max: 180, noNaN: true });
    fc.assert(
      fc.property(latitude, longitude, latitude, (a, b, c) => {
        const name = weather.name({ ...MONTH, latitude: a, longitude: b });
        expect(weather.name({ ...MONTH, latitude: Number(String(a)), longitude: Number(b.toString()) })).toBe(name);
        expect(weather.name({ ...MONTH, latitude: c, longitude: b }) === name).toBe(a === c);
        expect(JOBS.filter((job) => job.owns(name))).toEqual([weather]);
      }),
    );
  });
});

describe("a name belongs to", () => {
  test.each([
    ["weather_data_47.6_-122.3_2013_5", "weather_data"],
    ["weather_range_47.6_-122.3_2013-05_2013-06", "weather_range"],
    ["weather_range_47.6_-122.3_2013-05_2013-06_UTC@2013-06-20", "weather_range"],
    ["timer_tea", "timer"],
    ["timer_weather_data_47.6_-122.3_2013_5", "timer"],
    [`timer_${"x".repeat(100)}`, "timer"],
    [`timer_${"x".repeat(101)}`, undefined],
    ["timer_", undefined],
    ["timer_a:0", undefined],
    ["timer_a~2", undefined],
    ["timer_a\nb", undefined],
    ["timer_\ud800", undefined],
    ["weather_data_47.6_-122.3_2013_5:0", undefined],
    ["weather_data_47.6_-122.3_2013_5~2", undefined],
    ["weather_data_47.6_-122.3_2013_5_+05:00", undefined],
    ["weather_data_47.6_-122.3_2013_5@yesterday", undefined],
    ["weather_data_47.6_-122.3_2013", undefined],
    ["weather_data_47.6_-122.3_2013_5 ", undefined],
    ["", undefined],
    ["order-17", undefined],
  ])("%j: %s", (name, func) => {
    expect(JOBS.filter((job) => job.owns(name)).map((job) => job.func)).toEqual(func ? [func] : []);
  });
});

describe("a generation", () => {
  test.each([
    ["timer_tea", "timer_tea", 1],
    ["timer_tea~2", "timer_tea", 2],
    ["timer_tea~123456789", "timer_tea", 123_456_789],
    ["timer_tea~1", "timer_tea~1", 1],
    ["timer_tea~0", "timer_tea~0", 1],
    ["timer_tea~02", "timer_tea~02", 1],
    ["timer_tea~-2", "timer_tea~-2", 1],
    ["timer_tea~1234567890", "timer_tea~1234567890", 1],
    ["timer_tea~", "timer_tea~", 1],
    ["~2", "~2", 1],
    ["timer_tea~2~3", "timer_tea~2", 3],
  ])("of %j", (name, base, generation) => {
    expect(splitGeneration(name)).toEqual({ base, generation });
  });

  test("is found again in every name that is made with one", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[^~]+$/), fc.integer({ min: 1, max: 999_999_999 }), (base, generation) => {
        expect(splitGeneration(withGeneration(base, generation))).toEqual({ base, generation });
      }),
    );
  });
});

describe("of a month, the archive can have", () => {
  test.each([
    ["none", 2013, 5, "2013-04-30"],
    ["part", 2013, 5, "2013-05-01"],
    ["part", 2013, 5, "2013-05-31"],
    ["part", 2013, 5, "2013-06-05"],
    ["whole", 2013, 5, "2013-06-06"],
    ["none", 2014, 1, "2013-12-31"],
    ["part", 2013, 12, "2014-01-05"],
    ["whole", 2013, 12, "2014-01-06"],
    ["part", 2012, 2, "2012-03-05"],
    ["whole", 2012, 2, "2012-03-06"],
    ["part", 2013, 2, "2013-03-05"],
    ["whole", 2013, 2, "2013-03-06"],
    ["whole", 1940, 1, "2013-03-06"],
    ["none", 9999, 12, "2013-03-06"],
  ])("%s of %i-%i on %s", (availability, year, month, day) => {
    expect(monthAvailability(year, month, at(day))).toBe(availability);
    // At every hour of that day.
    expect(monthAvailability(year, month, Date.parse(`${day}T00:00:00Z`))).toBe(availability);
    expect(monthAvailability(year, month, Date.parse(`${day}T23:59:59.999Z`))).toBe(availability);
  });

  test.each([
    [2012, 2, "2012-02-01", "2012-02-29"],
    [2013, 2, "2013-02-01", "2013-02-28"],
    [2013, 12, "2013-12-01", "2013-12-31"],
    [1940, 1, "1940-01-01", "1940-01-31"],
  ])("%i-%i from first to last day", (year, month, first, last) => {
    expect(monthBounds(year, month)).toEqual({ first, last });
  });

  test("a day is a day of UTC", () => {
    expect(isoDate(Date.parse("2013-05-01T23:59:59-08:00"))).toBe("2013-05-02");
  });
});

describe("deadlines", () => {
  const now = at("2026-01-15");
  test("are set for each kind of job, and a timer's is later than the timer", () => {
    const fires_at = new Date(now + 365 * 86_400_000).toISOString();
    expect(weather.deadline(MONTH, now) - now).toBe(3_600_000);
    expect(timer.deadline({ timer_name: "tea", fires_at }, now)).toBeGreaterThan(Date.parse(fires_at));
  });
});

describe("the months of a range", () => {
  const place = { latitude: 1, longitude: 2, confirmed: true };
  test("cross years, and each is the job of that month alone", () => {
    const months = monthsOf({ ...place, from: "2012-11", to: "2013-02", timezone: "UTC" });
    expect(months.map(weather.name)).toEqual(
      ["2012_11", "2012_12", "2013_1", "2013_2"].map((month) => `weather_data_1_2_${month}_UTC`),
    );
    expect(range.name({ ...place, from: "2012-11", to: "2013-02", timezone: "UTC" })).toBe(
      "weather_range_1_2_2012-11_2013-02_UTC",
    );
  });

  test("are partial only where the archive cannot have them whole on the day it was asked for", () => {
    const months = monthsOf({ ...place, from: "2013-03", to: "2013-05", requested_on: "2013-05-04" });
    expect(months.map(weather.name)).toEqual([
      "weather_data_1_2_2013_3",
      "weather_data_1_2_2013_4@2013-05-04",
      "weather_data_1_2_2013_5@2013-05-04",
    ]);
  });
});
