import { setImmediate, setTimeout } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { CallContext } from "../../core/tools/tool.ts";
import { wrapServer } from "../index.ts";
import type { RequestTarget } from "./requests.ts";
import { watchResource } from "./resource-watch.ts";

test("a watcher finishes at once when it is stopped in the pause after a failure", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const stop = new AbortController();
    // The job cannot be started without a store.
    const context = { signal: stop.signal } as CallContext;
    const watching = watchResource({ name: "server" } as RequestTarget, "file:///a", context, () => {});
    const onEnd = vi.fn<() => void>();
    void watching.then(onEnd);
    while (vi.getTimerCount() === 0) await setImmediate();
    expect(onEnd).not.toHaveBeenCalled();
    stop.abort();
    await setImmediate();
    expect(onEnd).toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
  }
});

test("changes of a resource that changes all the time are reported once in a second", async () => {
  const stop = new AbortController();
  let jobs = 0;
  const create = async (job: object, name: string, args: object, settledAt: number) => {
    jobs += 1;
    return { job, name, args, state: "resolved", value: { at: String(jobs) }, settledAt };
  };
  const context = { signal: stop.signal, store: { create } } as unknown as CallContext;
  const { own } = wrapServer({ name: "acme", url: "https://acme.example" }).jobs;
  const onUpdated = vi.fn<() => void>();
  const watching = watchResource({ name: "acme", job: own }, "file:///a", context, onUpdated);
  await setTimeout(1_500);
  expect(onUpdated).toHaveBeenCalledTimes(2);
  stop.abort();
  await watching;
});
