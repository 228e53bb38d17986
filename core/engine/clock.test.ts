import { expect, test, vi } from "vitest";
import { machineClock, whenDrained } from "./clock.ts";

test("a timer may run for a year, and can be cancelled", async () => {
  vi.useFakeTimers();
  try {
    const year = 365 * 86_400_000;
    const rung: string[] = [];
    machineClock.after(year, () => rung.push("a year"));
    const callOff = machineClock.after(2 * year, () => rung.push("two years"));
    vi.advanceTimersByTime(year - 1);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(rung).toEqual(["a year"]);
    callOff();
    vi.advanceTimersByTime(2 * year);
    expect(rung).toEqual(["a year"]);
  } finally {
    vi.useRealTimers();
  }
});

test("a window ends after the last microtask, and before any timer or other turn", async () => {
  for (const depth of [0, 1, 100, 20_000]) {
    const order: string[] = [];
    setImmediate(() => order.push("another turn"));
    setTimeout(() => order.push("a timer"), 0);
    const chain = async () => {
      for (let i = 0; i < depth; i++) await undefined;
      order.push("the chain");
    };
    const ended = whenDrained(() => order.push("drained"));
    await Promise.all([chain(), ended]);
    expect(order).toEqual(["the chain", "drained"]);
  }
});
