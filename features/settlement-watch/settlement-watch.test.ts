import { afterEach, expect, test, vi } from "vitest";
import { SETTLED } from "../../core/engine/job-lease.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { SettlementWatch } from "./settlement-watch.ts";

afterEach(() => void vi.useRealTimers());

/** A watch of a settled promise, which the first `failures` reads cannot reach, and the number of reads. */
function scene(failures: number) {
  vi.useFakeTimers();
  const read = vi.fn(async () => {
    if (read.mock.calls.length <= failures) throw new Error("unreachable");
    return { state: "rejected_canceled" } as PromiseRecord;
  });
  const stop = new AbortController();
  const watcher = { watch: read, leave() {} };
  return {
    read,
    stop,
    watch: new SettlementWatch({ id: "job", createdAt: 0 }, watcher, stop),
  };
}

test("a read that fails is repeated", async () => {
  const { stop, watch } = scene(2);
  watch.start();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(stop.signal.reason).toBe(SETTLED);
});

test("after its close nothing is read again", async () => {
  const { read, stop, watch } = scene(2);
  watch.start();
  watch.close();
  await vi.advanceTimersByTimeAsync(20_000);
  expect([read.mock.calls.length, stop.signal.aborted]).toEqual([1, false]);
});
