import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StreamSlots } from "./stream-slots.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the slot of a stream that ended unnoticed is free after a while", async () => {
  const slots = new StreamSlots(2);
  slots.take("ada");
  expect(slots.take("ada")).toBeDefined();
  expect(slots.take("ada")).toBeUndefined();
  // Another caller has slots of its own.
  expect(slots.take("bob")).toBeDefined();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(slots.take("ada")).toBeDefined();
});

test("a slot that is renewed or was released counts for its caller at once", async () => {
  const slots = new StreamSlots(1);
  const slot = slots.enter("ada");
  for (let second = 0; second < 60; second += 2) {
    await vi.advanceTimersByTimeAsync(2_000);
    slot.renew();
  }
  expect(slots.take("ada")).toBeUndefined();
  expect(slots.refusal().status).toBe(429);
  slot.release();
  expect(slots.take("ada")).toBeDefined();
});
