import { expect, test } from "vitest";
import type { When } from "./schedule.ts";
import { lastBetween, nextAfter, problemIn } from "./times.ts";

const at = (text: string) => Date.parse(text);
const DAY = 86_400_000;

function firings(when: When, from: string, count: number): string[] {
  const found: string[] = [];
  for (let after = at(from); found.length < count;) {
    const next = nextAfter(when, after);
    if (next === undefined) break;
    found.push(new Date(next).toISOString());
    after = next;
  }
  return found;
}

test("a cron schedule in a time zone keeps its hour when clocks change", () => {
  const zurich = { cron: "30 8 * * *", timezone: "Europe/Zurich" };
  expect(firings(zurich, "2026-03-27T12:00:00Z", 3)).toEqual([
    "2026-03-28T07:30:00.000Z",
    "2026-03-29T06:30:00.000Z",
    "2026-03-30T06:30:00.000Z",
  ]);
  expect(firings(zurich, "2026-10-24T00:00:00Z", 2)).toEqual(["2026-10-24T06:30:00.000Z", "2026-10-25T07:30:00.000Z"]);
});

test("an hour that a day skips, or has twice, fires once on that day", () => {
  const night = { cron: "30 2 * * *", timezone: "Europe/Zurich" };
  const spring = firings(night, "2026-03-28T12:00:00Z", 2);
  expect(spring.map((time) => time.slice(0, 10))).toEqual(["2026-03-29", "2026-03-30"]);
  const autumn = firings(night, "2026-10-24T12:00:00Z", 2);
  expect(autumn.map((time) => time.slice(0, 10))).toEqual(["2026-10-25", "2026-10-26"]);
});

/** The firings that a schedule decides on if it looks whenever one is due, and each `every` milliseconds. */
function decided(when: When, from: string, until: string, every = Number.POSITIVE_INFINITY): string[] {
  const found: string[] = [];
  for (let after = at(from); ;) {
    const due = nextAfter(when, after) ?? Number.POSITIVE_INFINITY;
    // An alarm is a little late.
    const now = Math.min(due, after + every) + 50;
    if (now > at(until)) break;
    const last = lastBetween(when, after, now);
    if (last !== undefined) found.push(new Date(last).toISOString().slice(5, 16));
    after = now;
  }
  return found;
}

test.each([
  ["30 2 * * *", "Europe/Zurich", "03-28T00", "03-31T00", ["03-28T01:30", "03-29T01:30", "03-30T00:30"]],
  ["30 2 * * 0", "Europe/Zurich", "03-28T00", "04-06T00", ["03-29T01:30", "04-05T00:30"]],
  ["*/20 2 * * *", "Europe/Zurich", "03-29T00", "03-29T23", ["03-29T01:00", "03-29T01:20", "03-29T01:40"]],
  [
    "0 */6 * * *",
    "Europe/Zurich",
    "03-29T00",
    "03-30T00",
    ["03-29T04:00", "03-29T10:00", "03-29T16:00", "03-29T22:00"],
  ],
  ["30 2 * * *", "America/New_York", "03-07T00", "03-10T00", ["03-07T07:30", "03-08T07:30", "03-09T06:30"]],
  ["15 0 * * *", "America/Santiago", "09-05T00", "09-08T00", ["09-05T04:15", "09-06T04:15", "09-07T03:15"]],
  ["30 2 * * *", "Europe/Zurich", "10-24T00", "10-27T00", ["10-24T00:30", "10-25T00:30", "10-26T01:30"]],
  ["30 2 * * 0", "Europe/Zurich", "10-24T00", "11-02T00", ["10-25T00:30", "11-01T01:30"]],
  ["*/20 2 * * *", "Europe/Zurich", "10-24T12", "10-25T12", ["10-25T00:00", "10-25T00:20", "10-25T00:40"]],
  ["30 1 * * *", "America/New_York", "10-31T00", "11-03T00", ["10-31T05:30", "11-01T05:30", "11-02T06:30"]],
  ["15 23 * * *", "America/Santiago", "04-04T00", "04-07T00", ["04-04T02:15", "04-05T02:15", "04-06T03:15"]],
])("%s in %s fires once on the days on which clocks change (%s to %s)", (cron, timezone, from, until, times) => {
  const when = { cron, timezone };
  const days = [`2026-${from}:00:00Z`, `2026-${until}:00:00Z`] as const;
  expect(decided(when, ...days)).toEqual(times);
  // A firing that waits for the one before has the schedule look again and again.
  expect(decided(when, ...days, 25 * 60_000)).toEqual(times);
  // After an outage only the last is found.
  const [last] = times.slice(-1);
  const found = lastBetween(when, at(days[0]), at(days[1]));
  expect(new Date(found ?? 0).toISOString().slice(5, 16)).toBe(last);
});

test.each([
  ["03-29T00:30", "03-29T01:30"],
  ["10-25T00:30", "10-25T01:30"],
])("a schedule that fires each minute does so through the change of clocks (%s)", (from, until) => {
  const when = { cron: "* * * * *", timezone: "Europe/Zurich" };
  const days = [`2026-${from}:00Z`, `2026-${until}:30Z`] as const;
  const minutes = Array.from({ length: 60 }, (_, n) => new Date(at(days[0]) + (n + 1) * 60_000).toISOString());
  expect(decided(when, ...days)).toEqual(minutes.map((time) => time.slice(5, 16)));
});

test("an interval counts from its start, and a single time fires once", () => {
  const from = at("2026-01-01T00:00:00Z");
  expect(firings({ every: 3_600, from }, "2026-01-01T05:10:00Z", 2)).toEqual([
    "2026-01-01T06:00:00.000Z",
    "2026-01-01T07:00:00.000Z",
  ]);
  expect(firings({ every: 3_600, from }, "2026-01-01T00:00:00Z", 1)).toEqual(["2026-01-01T01:00:00.000Z"]);
  expect(firings({ at: "2026-01-01T08:00:00+01:00" }, "2026-01-01T00:00:00Z", 2)).toEqual(["2026-01-01T07:00:00.000Z"]);
});

test("the last firing in a period of time is found, if there is one", () => {
  const [after, until] = [at("2026-05-01T00:00:00Z"), at("2026-05-03T09:00:00Z")];
  const last = (when: When) => {
    const found = lastBetween(when, after, until);
    return found === undefined ? undefined : new Date(found).toISOString();
  };
  expect(last({ cron: "0 3 * * *" })).toBe("2026-05-03T03:00:00.000Z");
  expect(last({ cron: "0 9 * * *" })).toBe("2026-05-03T09:00:00.000Z");
  expect(last({ cron: "0 3 1 1 *" })).toBeUndefined();
  expect(last({ every: DAY / 1_000, from: after })).toBe("2026-05-03T00:00:00.000Z");
  expect(last({ every: DAY / 1_000, from: until - 10 })).toBeUndefined();
  expect(last({ at: "2026-05-02T00:00:00Z" })).toBe("2026-05-02T00:00:00.000Z");
  expect(last({ at: "2026-05-04T00:00:00Z" })).toBeUndefined();
});

test.each([
  [{}, "one of"],
  [{ cron: "* * * * *", every: 60 }, "one of"],
  [{ cron: "* * * * * *" }, "five fields"],
  [{ cron: "61 * * * *" }, "cron"],
  [{ cron: "0 3 * * *", timezone: "Mars/Base" }, "IANA"],
  [{ every: 60, timezone: "UTC" }, "belongs to cron"],
  [{ cron: "H 3 * * *" }, "no certain time"],
  [{ cron: "*/90 * * * *" }, "cron: a step of 90 is over 60, the most of its field. Write every instead"],
  [{ cron: "0 5/25 * * *" }, "a step of 25 is over 24"],
  [{ cron: "0 0 1-31/40 * *" }, "a step of 40 is over 31"],
  [{ every: 1e12 }, "every: must fire within ten years"],
  [{ cron: "0 3 * * h" }, "no certain time"],
  [{ cron: "0 H(1-5)/2 * * MON" }, "no certain time"],
  [{ cron: "0 0 30 2 *" }, "cron"],
  [{ at: "03/04/2027" }, "ISO 8601"],
  [{ at: "tomorrow 2027" }, "ISO 8601"],
  [{ at: "2027-02-30T08:00:00Z" }, "ISO 8601"],
  [{ at: "2027-03-04T08:00:00" }, "with an offset"],
  [{ at: "2027-03-04" }, "with an offset"],
  [{ at: "2027-03-04T08:00:00+25:00" }, "with an offset"],
  [{ at: "2027-03-04T08:00:00ZZ" }, "with an offset"],
  [{ at: "2027-03-04T08:00:00Z", timezone: "Europe/Zurich" }, "local time with timezone"],
  [{ at: "2999-01-01T00:00:00Z" }, "within ten years"],
  [{ every: 59 }, "60 seconds"],
  [{ every: Number.NaN }, "60 seconds"],
  [{ at: "tomorrow" }, "ISO 8601"],
  [{ at: "2020-01-01T00:00:00Z" }, "to come"],
])("%j is refused", (when, words) => {
  expect(problemIn(when, Date.now())).toContain(words);
});

test.each([
  [{ cron: "0 3 * * 1-5", timezone: "America/New_York" }],
  [{ cron: "0 3 * MAR THU" }],
  [{ every: 60 }],
  [{ at: "2027-03-04T08:00+01:00" }],
  [{ at: "2027-03-04T08:00:00.5", timezone: "Europe/Zurich" }],
])("%j is accepted", (when) => expect(problemIn(when, at("2026-11-01T00:00:00Z"))).toBeUndefined());

test("a definition may have a time that is past, and no other wrong one", () => {
  expect(problemIn({ at: "2020-01-01T00:00:00Z" }, Date.now(), true)).toBeUndefined();
  expect(problemIn({ at: "tomorrow" }, Date.now(), true)).toContain("ISO 8601");
});

test.each([
  ["2027-03-04T08:00:00", "Europe/Zurich", "2027-03-04T07:00:00.000Z"],
  ["2027-07-04T08:00", "America/New_York", "2027-07-04T12:00:00.000Z"],
  // Skipped: an hour later. Twice: the first.
  ["2027-03-28T02:30:00", "Europe/Zurich", "2027-03-28T01:30:00.000Z"],
  ["2027-10-31T02:30:00", "Europe/Zurich", "2027-10-31T00:30:00.000Z"],
  ["2027-10-31T03:00:00", "Europe/Zurich", "2027-10-31T02:00:00.000Z"],
  ["2027-03-28T03:00:00", "Europe/Zurich", "2027-03-28T01:00:00.000Z"],
])("%s in %s is %s", (local, timezone, time) => {
  expect(firings({ at: local, timezone }, "2027-01-01T00:00:00Z", 2)).toEqual([time]);
});
