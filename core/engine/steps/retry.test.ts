import { describe, expect, test } from "vitest";
import { HOUR, MINUTE, NonRetryableError, RetryableError, SECOND } from "../../definitions/context.ts";
import { pauseAfter } from "./retry.ts";

const unavailable = new Error("it answered 503");
const IN_TIME = Number.MAX_SAFE_INTEGER;

/** What is known when `attempts` have failed and the first did so `ago` milliseconds before now. */
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

  test("the other side is not asked sooner than it wished, and not by all at once", () => {
    const later = new RetryableError("it answered 429", { retryAfter: 20_000 });
    expect(pauseAfter(later, {}, failure(), 0)).toBe(20_000);
    expect(pauseAfter(later, {}, failure(), 1)).toBe(20_500);
    expect(pauseAfter(new RetryableError("it answered 429", { retryAfter: 100 }), {}, failure(3), 1)).toBe(4_000);
  });

  test("a pause that would reach past the deadline is not begun", () => {
    const later = new RetryableError("it answered 503", { retryAfter: 20_000 });
    expect(pauseAfter(later, { maxDuration: HOUR }, failure(12, { left: 20_000 }), 0)).toBeUndefined();
    expect(pauseAfter(later, { maxDuration: HOUR }, failure(12, { left: 31_000 }), 0)).toBeUndefined();
    expect(pauseAfter(later, { maxDuration: HOUR }, failure(12, { left: HOUR }), 0)).toBe(30_000);
  });

  test("nor one past the time that was given, ten minutes unless said otherwise", () => {
    expect(pauseAfter(unavailable, undefined, failure(9, { ago: 9 * MINUTE }), 0)).toBe(30_000);
    expect(pauseAfter(unavailable, undefined, failure(9, { ago: 10 * MINUTE - 1 }), 0)).toBeUndefined();
    expect(pauseAfter(unavailable, { maxDuration: HOUR }, failure(9, { ago: 10 * MINUTE }), 0)).toBe(30_000);
    expect(pauseAfter(unavailable, { maxDuration: 5 * SECOND }, failure(9), 0)).toBeUndefined();
  });

  test("there are as many attempts as were given", () => {
    expect(pauseAfter(unavailable, { maxAttempts: 3 }, failure(2), 0)).toBe(1_000);
    expect(pauseAfter(unavailable, { maxAttempts: 3 }, failure(3), 0)).toBeUndefined();
    expect(pauseAfter(unavailable, false, failure(1), 0)).toBeUndefined();
  });

  test.each([
    ["says so", new NonRetryableError("no")],
    ["is the code's own", new TypeError("x is undefined")],
    ["is a name that is not there", new ReferenceError("x")],
  ])("one that %s is final", (_what, error) => {
    expect(pauseAfter(error, {}, failure(), 0)).toBeUndefined();
  });

  test("a network's failure, which is a TypeError as well, is not", () => {
    expect(pauseAfter(new TypeError("fetch failed", { cause: new Error("ECONNRESET") }), {}, failure(), 0)).toBe(500);
  });
});
