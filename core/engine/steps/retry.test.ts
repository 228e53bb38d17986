import { describe, expect, test } from "vitest";
import {
  HOUR,
  MINUTE,
  NonRetryableError,
  parseRetryAfter,
  type Retry,
  RetryableError,
  SECOND,
} from "../../author/context.ts";
import { pauseAfter } from "./retry.ts";

const unavailable = new Error("it answered 503");
const IN_TIME = Number.MAX_SAFE_INTEGER;

/** The state after `attempts` failures, the first `ago` milliseconds before now and `left` before the deadline. */
const failure = (attempts = 1, { ago = 0, left = IN_TIME } = {}) => ({
  attempts,
  since: 1_000_000 - ago,
  now: 1_000_000,
  deadline: left === IN_TIME ? IN_TIME : 1_000_000 + left,
});

describe("after a failed attempt", () => {
  test("the pause doubles up to a minute, half of it random", () => {
    const pauses = (random: number) => [1, 2, 3, 7, 50].map((n) => pauseAfter(unavailable, {}, failure(n), random));
    expect(pauses(0)).toEqual([500, 1_000, 2_000, 30_000, 30_000]);
    expect(pauses(1)).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
  });

  test("the pause is not shorter than `retryAfter`, and a random part spreads the clients", () => {
    const later = new RetryableError("it answered 429", { retryAfter: 20_000 });
    expect(pauseAfter(later, {}, failure(), 0)).toBe(20_000);
    expect(pauseAfter(later, {}, failure(), 1)).toBe(20_500);
    expect(pauseAfter(new RetryableError("it answered 429", { retryAfter: 100 }), {}, failure(3), 1)).toBe(4_000);
  });

  test("a `retryAfter` that is no number counts as none, and an infinite one ends the step", () => {
    const asked = (retryAfter: number) => pauseAfter(new RetryableError("429", { retryAfter }), {}, failure(3), 1);
    expect([Number.NaN, undefined as never, "7" as never].map(asked)).toEqual([4_000, 4_000, 4_000]);
    expect(asked(Number.POSITIVE_INFINITY)).toBeUndefined();
  });

  test("an option that is undefined has its default, and one that is no number ends the step", () => {
    const late = failure(20, { ago: 11 * MINUTE });
    expect(pauseAfter(unavailable, { maxDuration: undefined } as unknown as Retry, late, 0)).toBeUndefined();
    const optional = { maxInterval: undefined, initialInterval: undefined } as unknown as Retry;
    expect(pauseAfter(unavailable, optional, failure(50), 1)).toBe(60_000);
    for (const option of ["maxDuration", "maxInterval", "initialInterval"])
      expect(pauseAfter(unavailable, { [option]: Number.NaN }, failure(), 0)).toBeUndefined();
  });

  test("there is no pause that would reach past the deadline", () => {
    const later = new RetryableError("it answered 503", { retryAfter: 20_000 });
    expect(pauseAfter(later, { maxDuration: HOUR }, failure(12, { left: 20_000 }), 0)).toBeUndefined();
    expect(pauseAfter(later, { maxDuration: HOUR }, failure(12, { left: 31_000 }), 0)).toBeUndefined();
    expect(pauseAfter(later, { maxDuration: HOUR }, failure(12, { left: HOUR }), 0)).toBe(30_000);
  });

  test("there is no pause that would reach past `maxDuration`, by default ten minutes", () => {
    expect(pauseAfter(unavailable, undefined, failure(9, { ago: 9 * MINUTE }), 0)).toBe(30_000);
    expect(pauseAfter(unavailable, undefined, failure(9, { ago: 10 * MINUTE - 1 }), 0)).toBeUndefined();
    expect(pauseAfter(unavailable, { maxDuration: HOUR }, failure(9, { ago: 10 * MINUTE }), 0)).toBe(30_000);
    expect(pauseAfter(unavailable, { maxDuration: 5 * SECOND }, failure(9), 0)).toBeUndefined();
  });

  test("there are at most `maxAttempts` attempts", () => {
    expect(pauseAfter(unavailable, { maxAttempts: 3 }, failure(2), 0)).toBe(1_000);
    expect(pauseAfter(unavailable, { maxAttempts: 3 }, failure(3), 0)).toBeUndefined();
    expect(pauseAfter(unavailable, false, failure(1), 0)).toBeUndefined();
  });

  test.each([
    ["says so", new NonRetryableError("no")],
    ["is a programming error", new TypeError("x is undefined")],
    ["names a missing variable", new ReferenceError("x")],
  ])("an error that %s is final", (_what, error) => {
    expect(pauseAfter(error, {}, failure(), 0)).toBeUndefined();
  });

  test("a network failure is not final, although it is a TypeError as well", () => {
    expect(pauseAfter(new TypeError("fetch failed", { cause: new Error("ECONNRESET") }), {}, failure(), 0)).toBe(500);
  });
});

describe("the header Retry-After", () => {
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
