import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Console } from "./console.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the cancellation of a job is printed, however many other jobs run", async () => {
  const output = new PassThrough();
  const out = new Console({ output, plain: true });
  for (let n = 0; n < 50; n++) {
    out.onLine("worker", JSON.stringify({ level: "info", msg: "job started", job: `job${n}` }), "stdout");
  }
  output.read();
  out.follow(async (job) => (job === "job49" ? { word: "cancelled" } : undefined));
  await vi.advanceTimersByTimeAsync(10_000);
  out.close();
  expect(String(output.read())).toContain("cancelled job49");
});
