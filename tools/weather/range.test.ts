import { expect, test } from "vitest";
import { month } from "./month.ts";
import { monthsOf, range, weatherRange } from "./range.ts";

const PLACE = { latitude: 1, longitude: 2, confirmed: true };

const names = (args: Parameters<typeof monthsOf>[0]) => Promise.all(monthsOf(args).map((each) => month.name(each)));

test("the months of a range cross years, and each is the job of that month alone", async () => {
  const args = { ...PLACE, from: "2012-11", to: "2013-02", timezone: "UTC" };
  expect(await names(args)).toEqual(
    ["2012_11", "2012_12", "2013_1", "2013_2"].map((each) => `weather_data_1_2_${each}_UTC`),
  );
  expect(await range.name(args)).toBe("weather_range_1_2_2012-11_2013-02_UTC");
});

test("they are partial only where the archive cannot have them whole on the day it was asked for", async () => {
  const day = { requested_on: "2013-05-04", earliest: "2013-05-04" };
  expect(await names({ ...PLACE, from: "2013-03", to: "2013-05", ...day })).toEqual([
    "weather_data_1_2_2013_3",
    "weather_data_1_2_2013_4@2013-05-04",
    "weather_data_1_2_2013_5@2013-05-04",
  ]);
});

test("each is judged as that month alone is: by the days of the zone, or by the earliest that it can be at the place", async () => {
  const args = { ...PLACE, from: "2013-04", to: "2013-05", requested_on: "2013-05-06", earliest: "2013-05-06" };
  expect(await names(args)).toContain("weather_data_1_2_2013_4");
  // West of Greenwich it may be the day before.
  expect(await names({ ...args, earliest: "2013-05-05" })).toContain("weather_data_1_2_2013_4@2013-05-06");
  // In Honolulu, too; but there the day is known.
  const zone = { ...args, timezone: "Pacific/Honolulu", earliest: "2013-05-06" };
  expect(await names(zone)).toContain("weather_data_1_2_2013_4_Pacific/Honolulu");
});

test("it counts for its months where a caller may start a number of jobs", () => {
  expect(weatherRange.job.counts({ ...PLACE, from: "2012-11", to: "2014-10" })).toBe(24);
});

test("whether it was confirmed beforehand is no part of its name", async () => {
  const args = { ...PLACE, from: "2012-01", to: "2014-12" };
  expect(await range.name({ ...args, confirmed: false })).toBe(await range.name(args));
});

test("a range that is whole is one for ever; of one that is not, what is missing is tried again", () => {
  expect(range.freshFor({ months: [] })).toBeUndefined();
  expect(range.freshFor({ months: [], missing: 1 })).toBe(0);
});
