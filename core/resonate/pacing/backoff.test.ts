import { expect, test } from "vitest";
import { backoff } from "./backoff.ts";

test("back-off never exceeds its bound, even after thousands of failures", () => {
  expect(backoff(5_000, { base: 200, max: 5_000 }, 0.999)).toBeLessThanOrEqual(5_000);
});
