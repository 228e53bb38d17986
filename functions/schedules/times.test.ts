import { expect, test } from "vitest";
import type { When } from "./schedule.ts";
import { lastBetween, nextAfter, problemIn } from "./times.ts";

const at = (text: string) => Date.parse(text);
const DAY = 86_400_000;

async function firings(when: When, from: string, count: number): Promise<string[]> {
  const found: string[] = [];
  for (let after = at(from); found.length < count; ) {
    const next = await nextAfter(when, after);
    if (next === undefined) break;
    found.push(new Date(next).toISOString());
    after = next;
  }
  return found;
}

test("a cron schedule in a time zone keeps its hour when clocks change", async () => {
  const zurich = { cron: "30 8 * * *", timezone: "Europe/Zurich" };
  expect(await firings(zurich, "2026-03-27T12:00:00Z", 3)).toEqual([
    "2026-03-28T07:30:00.000Z",
    "2026-03-29T06:30:00.000Z",
    "2026-03-30T06:30:00.000Z",
  ]);
  expect(await firings(zurich, "2026-10-24T00:00:00Z", 2)).toEqual([
    "2026-10-24T06:30:00.000Z",
    "2026-10-25T07:30:00.000Z",
  ]);
});

test("an hour that a day skips, or has twice, fires once on that day", async () => {
  const night = { cron: "30 2 * * *", timezone: "Europe/Zurich" };
  const spring = await firings(night, "2026-03-28T12:00:00Z", 2);
  expect(spring.map((time) => time.slice(0, 10))).toEqual(["2026-03-29", "2026-03-30"]);
  const autumn = await firings(night, "2026-10-24T12:00:00Z", 2);
  expect(autumn.map((time) => time.slice(0, 10))).toEqual(["2026-10-25", "2026-10-26"]);
});

test("an interval counts from its start, and a single time fires once", async () => {
  const from = at("2026-01-01T00:00:00Z");
  expect(await firings({ every: 3_600, from }, "2026-01-01T05:10:00Z", 2)).toEqual([
    "2026-01-01T06:00:00.000Z",
    "2026-01-01T07:00:00.000Z",
  ]);
  expect(await firings({ every: 3_600, from }, "2026-01-01T00:00:00Z", 1)).toEqual(["2026-01-01T01:00:00.000Z"]);
  expect(await firings({ at: "2026-01-01T08:00:00+01:00" }, "2026-01-01T00:00:00Z", 2)).toEqual([
    "2026-01-01T07:00:00.000Z",
  ]);
});

test("the last firing in a period of time is found, if there is one", async () => {
  const [after, until] = [at("2026-05-01T00:00:00Z"), at("2026-05-03T09:00:00Z")];
  const last = async (when: When) => {
    const found = await lastBetween(when, after, until);
    return found === undefined ? undefined : new Date(found).toISOString();
  };
  expect(await last({ cron: "0 3 * * *" })).toBe("2026-05-03T03:00:00.000Z");
  expect(await last({ cron: "0 9 * * *" })).toBe("2026-05-03T09:00:00.000Z");
  expect(await last({ cron: "0 3 1 1 *" })).toBeUndefined();
  expect(await last({ every: DAY / 1_000, from: after })).toBe("2026-05-03T00:00:00.000Z");
  expect(await last({ every: DAY / 1_000, from: until - 10 })).toBeUndefined();
  expect(await last({ at: "2026-05-02T00:00:00Z" })).toBe("2026-05-02T00:00:00.000Z");
  expect(await last({ at: "2026-05-04T00:00:00Z" })).toBeUndefined();
});

test.each([
  [{}, "one of"],
  [{ cron: "* * * * *", every: 60 }, "one of"],
  [{ cron: "* * * * * *" }, "five fields"],
  [{ cron: "61 * * * *" }, "cron"],
  [{ cron: "0 3 * * *", timezone: "Mars/Base" }, "IANA"],
  [{ every: 60, timezone: "UTC" }, "belongs to cron"],
  [{ every: 59 }, "60 seconds"],
  [{ every: Number.NaN }, "60 seconds"],
  [{ at: "tomorrow" }, "ISO 8601"],
  [{ at: "2020-01-01T00:00:00Z" }, "to come"],
])("%j is refused", async (when, words) => {
  expect(await problemIn(when, Date.now())).toContain(words);
});

test.each([[{ cron: "0 3 * * 1-5", timezone: "America/New_York" }], [{ every: 60 }], [{ at: "2999-01-01T00:00:00Z" }]])(
  "%j is accepted",
  async (when) => expect(await problemIn(when, Date.now())).toBeUndefined(),
);
