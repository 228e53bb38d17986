import { setImmediate, setTimeout } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { CallContext } from "../../core/tools/tool.ts";
import { wrapServer } from "../index.ts";
import type { Asked } from "./asking.ts";
import { watchResource } from "./watching.ts";

test("a watcher ends at once when it is stopped in the pause after a failure", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const stop = new AbortController();
    // The job cannot be started without a store.
    const context = { signal: stop.signal } as CallContext;
    const watching = watchResource({ name: "server" } as Asked, "file:///a", context, () => {});
    const ended = vi.fn<() => void>();
    void watching.then(ended);
    while (vi.getTimerCount() === 0) await setImmediate();
    expect(ended).not.toHaveBeenCalled();
    stop.abort();
    await setImmediate();
    expect(ended).toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
  }
});

test("changes of a resource that changes all the time are told once in a second", async () => {
  const stop = new AbortController();
  let jobs = 0;
  const create = async (job: object, name: string, args: object, settledAt: number) => {
    jobs += 1;
    return { job, name, args, state: "resolved", value: { at: String(jobs) }, settledAt };
  };
  const context = { signal: stop.signal, store: { create } } as unknown as CallContext;
  const { own } = wrapServer({ name: "acme", url: "https://acme.example" }).jobs;
  const told = vi.fn<() => void>();
  const watching = watchResource({ name: "acme", job: own }, "file:///a", context, told);
  await setTimeout(1_500);
  expect(told).toHaveBeenCalledTimes(2);
  stop.abort();
  await watching;
});
