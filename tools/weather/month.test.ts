import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { month, monthToGather, requestDay, roundDegrees, startGathering } from "./month.ts";

const MONTH = { latitude: 53.5, longitude: -113.5, year: 2013, month: 5 };

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
  ])("%j", async (args, name) => {
    expect(await month.name({ ...MONTH, ...args })).toBe(name);
  });

  test("is the same for equal coordinates, and different for different ones", async () => {
    const latitude = fc.double({ min: -90, max: 90, noNaN: true });
    const longitude = fc.double({ min: -180, max: 180, noNaN: true });
    await fc.assert(
      fc.asyncProperty(latitude, longitude, latitude, async (a, b, c) => {
        const name = await month.name({ ...MONTH, latitude: a, longitude: b });
        const same = { ...MONTH, latitude: Number(String(a)), longitude: Number(b.toString()) };
        expect(await month.name(same)).toBe(name);
        expect((await month.name({ ...MONTH, latitude: c, longitude: b })) === name).toBe(a === c);
        expect(month.owns(name)).toBe(true);
      }),
    );
  });

  test("may have a zone's older name, and more decimals", () => {
    for (const end of ["Asia/Calcutta", "Europe/Kiev", "US/Pacific"])
      expect(month.owns(`weather_data_53.5_-113.5_2013_5_${end}`)).toBe(true);
    expect(month.owns("weather_data_53.500041_-113.4900007_2013_5")).toBe(true);
  });
});

test.each([
  [53.50004, 53.5],
  [53.50006, 53.5001],
  [-122.33214, -122.3321],
  [-0.00001, 0],
  [0.1 + 0.2, 0.3],
  [90, 90],
])("%d degrees are rounded to four decimals: %d", (degrees, result) => {
  expect(Object.is(roundDegrees(degrees), result)).toBe(true);
});

test("the recorded day of a request lies in the requested month, or after it", () => {
  // In UTC it is still April, but at these coordinates May may have begun.
  expect(requestDay({ longitude: 170 }, 2013, 5, Date.parse("2013-04-30T20:00:00Z"))).toBe("2013-05-01");
  expect(requestDay({ longitude: -122.3 }, 2013, 5, Date.parse("2013-06-02T01:00:00Z"))).toBe("2013-06-02");
  const place = { longitude: 0, timezone: "Asia/Tokyo" };
  expect(requestDay(place, 2013, 5, Date.parse("2013-05-19T20:00:00Z"))).toBe("2013-05-20");
});

test.each([
  // In Auckland the month has begun; in Honolulu it begins more than half a day later.
  ["Pacific/Auckland", "2013-04-30T12:30:00Z", 2013, 5, "2013-05-01"],
  ["Asia/Calcutta", "2013-04-30T18:31:00Z", 2013, 5, "2013-05-01"],
  ["Pacific/Honolulu", "2013-05-01T09:00:00Z", 2013, 5, undefined],
] as const)("whether a month has begun depends on the day in %s at %s", async (timezone, now, year, month, day) => {
  const input = { latitude: -36.84849, longitude: 174.76333, year, month, timezone };
  const args = async () => {
    const parsed = await startGathering.input.schema.parseAsync(input);
    return monthToGather(parsed as never, { now: Date.parse(now) });
  };
  if (day === undefined) await expect(args()).rejects.toThrow("2013-05 has not begun");
  else {
    expect(await args()).toEqual({
      latitude: -36.8485,
      longitude: 174.7633,
      year,
      month,
      timezone: timezone.replace("Calcutta", "Kolkata"),
      requested_on: day,
    });
  }
});

test("a gathering may take an hour", () => {
  const now = Date.parse("2026-01-15T12:00:00Z");
  expect(month.deadline(MONTH, now) - now).toBe(3_600_000);
});
