import { expect, test } from "vitest";
import { month } from "./month.ts";
import { monthsOf, range, weatherRange } from "./range.ts";

const PLACE = { latitude: 1, longitude: 2, confirmed: true };

const names = (args: Parameters<typeof monthsOf>[0]) => Promise.all(monthsOf(args).map((each) => month.name(each)));

test("a range may cross years, and each of its months is the same job as that month alone", async () => {
  const args = { ...PLACE, from: "2012-11", to: "2013-02", timezone: "UTC" };
  expect(await names(args)).toEqual(
    ["2012_11", "2012_12", "2013_1", "2013_2"].map((each) => `weather_data_1_2_${each}_UTC`),
  );
  expect(await range.name(args)).toBe("weather_range_1_2_2012-11_2013-02_UTC");
});

test("months are partial only if the archive cannot have them whole on the day of the request", async () => {
  const day = { requested_on: "2013-05-04", earliest: "2013-05-04" };
  expect(await names({ ...PLACE, from: "2013-03", to: "2013-05", ...day })).toEqual([
    "weather_data_1_2_2013_3",
    "weather_data_1_2_2013_4@2013-05-04",
    "weather_data_1_2_2013_5@2013-05-04",
  ]);
});

test("whether a month is whole depends on the day in the zone, or else on the earliest possible day at the place", async () => {
  const args = { ...PLACE, from: "2013-04", to: "2013-05", requested_on: "2013-05-06", earliest: "2013-05-06" };
  expect(await names(args)).toContain("weather_data_1_2_2013_4");
  // West of Greenwich it may be the day before.
  expect(await names({ ...args, earliest: "2013-05-05" })).toContain("weather_data_1_2_2013_4@2013-05-06");
  // In Honolulu too, but with a time zone the day is known.
  const zone = { ...args, timezone: "Pacific/Honolulu", earliest: "2013-05-06" };
  expect(await names(zone)).toContain("weather_data_1_2_2013_4_Pacific/Honolulu");
});

test("a range counts as many jobs as it has months towards a caller's quota", () => {
  expect(weatherRange.job.counts({ ...PLACE, from: "2012-11", to: "2014-10" })).toBe(24);
});

test("a range's name does not depend on a confirmation in the call", async () => {
  const args = { ...PLACE, from: "2012-01", to: "2014-12" };
  expect(await range.name({ ...args, confirmed: false })).toBe(await range.name(args));
});

test("a complete range stays fresh forever; missing months of an incomplete one are tried again", () => {
  expect(range.freshFor({ months: [] })).toBeUndefined();
  expect(range.freshFor({ months: [], missing: 1 })).toBe(0);
});
