import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import type { PromiseWatcher } from "../../worker/connection/promise-watcher.ts";
import { Limits } from "./limits.ts";

const DAY = 86_400_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The limits of a worker whose server keeps promises in memory, and times them out. */
function limitsOfOneWorker(): Limits {
  const promises = new Map<string, PromiseRecord>();
  const call = async ({ kind, data }: { kind: string; data: PromiseRecord }) => {
    if (kind === "promise.create" && !promises.has(data.id))
      promises.set(data.id, { ...data, state: "pending", value: {}, createdAt: Date.now() });
    const found = promises.get(data.id);
    return found && { ...found, ...(found.timeoutAt <= Date.now() && { state: "rejected_timedout" }) };
  };
  const client = { call } as unknown as ResonateClient;
  const watch = (id: string) => client.call({ kind: "promise.get", data: { id } });
  return new Limits({ client, watcher: { watch } as unknown as PromiseWatcher, leaseTime: 1_000, namespace: "" });
}

test.each([1, 30, 400])("a rate of one in %d days holds that long, beyond the longest timer of Node", async (days) => {
  const limits = limitsOfOneWorker();
  let begun = 0;
  const take = (signal = new AbortController().signal) =>
    limits
      .take({ name: "billing", limit: 1, per: days * DAY }, "ada", signal)
      .then(() => begun++)
      .catch(() => {});
  void take();
  await vi.advanceTimersByTimeAsync(10_000);
  const impatient = new AbortController();
  void take(impatient.signal);
  await vi.advanceTimersByTimeAsync(10_000);
  impatient.abort();
  await vi.advanceTimersByTimeAsync(days * DAY - 30_000);
  void take();
  await vi.advanceTimersByTimeAsync(9_000);
  expect(begun).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(begun).toBe(2);
});
