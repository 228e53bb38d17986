import { expect, test } from "vitest";
import { timer } from "./timer.ts";

const now = Date.parse("2026-01-15T12:00:00Z");

test("a timer's deadline is later than the timer, and it is expected when it fires", () => {
  const fires_at = new Date(now + 365 * 86_400_000).toISOString();
  expect(timer.deadline({ timer_name: "tea", fires_at }, now)).toBeGreaterThan(Date.parse(fires_at));
  expect(timer.expectedAt?.({ timer_name: "tea", fires_at })).toBe(Date.parse(fires_at));
});

test("a timer's job name depends only on the timer's name", async () => {
  const name = await timer.name({ timer_name: "tea at five", fires_at: new Date(now).toISOString() });
  expect([name, await timer.name({ timer_name: "tea at five", fires_at: "" })]).toEqual(
    Array(2).fill("timer_tea at five"),
  );
});
