import { describe, expect, test } from "vitest";
import { backoff } from "../../worker/backoff.ts";
import { nextStep } from "../../worker/functions/retry.ts";
import { parseRetryAfter, UpstreamError } from "../../worker/open-meteo.ts";

const HOUR = 3_600_000;
const unavailable = (retryAfter?: number) => new UpstreamError("unavailable", "Open-Meteo answered 503", retryAfter);
const invalid = new UpstreamError("invalid", "Open-Meteo's answer is not JSON");

describe("after a failed request", () => {
  test("the wait doubles up to a minute, half of it random", () => {
    const waits = (random: number) =>
      [1, 2, 3, 7, 50].map((attempt) => nextStep(unavailable(), { attempt, invalid: 0, timeLeft: HOUR }, random));
    expect(waits(0)).toMatchObject([500, 1_000, 2_000, 30_000, 30_000].map((retry_in_ms) => ({ retry_in_ms })));
    expect(waits(1)).toMatchObject([1_000, 2_000, 4_000, 60_000, 60_000].map((retry_in_ms) => ({ retry_in_ms })));
  });

  test("the archive is not asked sooner than it wished", () => {
    const step = nextStep(unavailable(20_000), { attempt: 1, invalid: 0, timeLeft: HOUR });
    expect(step).toMatchObject({ reason: "Open-Meteo answered 503", retry_in_ms: expect.any(Number) });
    expect("retry_in_ms" in step && step.retry_in_ms).toBeGreaterThanOrEqual(20_000);
  });

  test("a wait past the deadline is not begun: the job fails with the last reason", () => {
    const step = nextStep(unavailable(20_000), { attempt: 12, invalid: 0, timeLeft: 20_000 });
    expect(step).toEqual({ failure: "gave up after 12 attempts: Open-Meteo answered 503" });
  });

  test("an unusable answer is final the fourth time, however often the archive was away in between", () => {
    expect(nextStep(invalid, { attempt: 9, invalid: 2, timeLeft: HOUR })).toMatchObject({ invalid: true });
    expect(nextStep(invalid, { attempt: 9, invalid: 3, timeLeft: HOUR })).toHaveProperty("failure");
  });

  test("a refusal is final, with nothing but its reason", () => {
    const refused = new UpstreamError("refused", "Open-Meteo answered 400: Invalid timezone");
    expect(nextStep(refused, { attempt: 1, invalid: 0, timeLeft: HOUR })).toEqual({ failure: refused.message });
  });
});

test("back-off never exceeds its bound, however many failures", () => {
  expect(backoff(5_000, { base: 200, max: 5_000 }, 0.999)).toBeLessThanOrEqual(5_000);
});

describe("Retry-After", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  test.each([
    ["120", 120_000],
    ["0", 0],
    [" 7 ", 7_000],
    ["Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["Wed, 31 Dec 2025 23:00:00 GMT", 0],
    ["soon", undefined],
    ["", undefined],
    [null, undefined],
  ])("%j is %s ms", (header, expected) => {
    expect(parseRetryAfter(header, now)).toBe(expected);
  });
});
