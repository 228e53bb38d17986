import { setImmediate } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { CallContext } from "../../core/author/tool.ts";
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
