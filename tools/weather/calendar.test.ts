import { describe, expect, test } from "vitest";
import { canonicalZone, isoDate, monthAvailability, monthBounds, today } from "./calendar.ts";

const GREENWICH = { longitude: 0, timezone: "UTC" };
const at = (time: string) => Date.parse(time);

describe("the part of a month that the archive can have is", () => {
  test.each([
    ["none", 2013, 5, "2013-04-30"],
    ["partial", 2013, 5, "2013-05-01"],
    ["partial", 2013, 5, "2013-05-31"],
    ["partial", 2013, 5, "2013-06-05"],
    ["complete", 2013, 5, "2013-06-06"],
    ["none", 2014, 1, "2013-12-31"],
    ["partial", 2013, 12, "2014-01-05"],
    ["complete", 2013, 12, "2014-01-06"],
    ["partial", 2012, 2, "2012-03-05"],
    ["complete", 2012, 2, "2012-03-06"],
    ["partial", 2013, 2, "2013-03-05"],
    ["complete", 2013, 2, "2013-03-06"],
    ["complete", 1940, 1, "2013-03-06"],
    ["none", 9999, 12, "2013-03-06"],
  ])("%s of %i-%i on %s", (availability, year, month, day) => {
    // At every hour of that day.
    for (const time of ["00:00:00", "12:00:00", "23:59:59.999"]) {
      expect(monthAvailability(year, month, GREENWICH, at(`${day}T${time}Z`))).toBe(availability);
    }
  });

  test.each([
    // The month begins in the east first.
    ["partial", "Pacific/Kiritimati", "2013-04-30T10:00:00Z"],
    ["none", "Pacific/Kiritimati", "2013-04-30T09:59:59Z"],
    ["partial", "Pacific/Pago_Pago", "2013-05-01T11:00:00Z"],
    ["none", "Pacific/Pago_Pago", "2013-05-01T10:59:59Z"],
    ["complete", "Asia/Tokyo", "2013-06-05T15:00:00Z"],
    ["partial", "Asia/Tokyo", "2013-06-05T14:59:59Z"],
  ])("%s of 2013-5 by the days of %s at %s", (availability, timezone, now) => {
    expect(monthAvailability(2013, 5, { longitude: 0, timezone }, at(now))).toBe(availability);
  });

  test.each([
    // If only the coordinates are known, a month has begun as soon as it may have begun, and is complete only when it must be.
    ["partial", 180, "2013-04-30T10:00:00Z"],
    ["partial", -171.4, "2013-04-30T10:00:00Z"],
    ["none", -122.3, "2013-04-30T23:59:59Z"],
    ["partial", -122.3, "2013-05-01T08:00:00Z"],
    ["partial", -122.3, "2013-06-06T07:00:00Z"],
    ["complete", -122.3, "2013-06-06T12:10:00Z"],
  ])("%s of 2013-5 at %i degrees east at %s", (availability, longitude, now) => {
    expect(monthAvailability(2013, 5, { longitude }, at(now))).toBe(availability);
  });

  test.each([
    [2012, 2, "2012-02-01", "2012-02-29"],
    [2013, 2, "2013-02-01", "2013-02-28"],
    [2013, 12, "2013-12-01", "2013-12-31"],
    [1940, 1, "1940-01-01", "1940-01-31"],
  ])("bounded by the first and last day of %i-%i", (year, month, first, last) => {
    expect(monthBounds(year, month)).toEqual({ first, last });
  });
});

test("a day is taken in UTC, or in the time zone of the place", () => {
  const now = at("2013-05-01T23:59:59-08:00");
  expect(isoDate(now)).toBe("2013-05-02");
  expect(today({ longitude: 0, timezone: "America/Los_Angeles" }, now)).toEqual({
    earliest: "2013-05-02",
    latest: "2013-05-02",
  });
  expect(today({ longitude: 0, timezone: "Pacific/Honolulu" }, now).latest).toBe("2013-05-01");
});

describe("the newest name of the zone", () => {
  test.each([
    ["Asia/Kolkata", "Asia/Kolkata"],
    ["Asia/Calcutta", "Asia/Kolkata"],
    ["asia/calcutta", "Asia/Kolkata"],
    ["Europe/Kiev", "Europe/Kyiv"],
    ["america/new_york", "America/New_York"],
    ["Etc/GMT+7", "Etc/GMT+7"],
    ["Mars/Olympus", undefined],
    ["+05:00", undefined],
    ["", undefined],
  ])("%j is %s", (zone, name) => {
    expect(canonicalZone(zone)).toBe(name);
  });
});
