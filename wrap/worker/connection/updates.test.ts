import { afterEach, expect, test, vi } from "vitest";
import { Updates } from "./updates.ts";

afterEach(() => vi.useRealTimers());

/** The changes at a server that never says that it has begun a subscription. */
const silent = () => new Updates(() => ({ begun: new Promise(() => {}), end() {} }));

test("a job does not wait for longer than five minutes for a subscription that the server never begins", async () => {
  vi.useFakeTimers();
  const next = silent().next("acme://a", undefined, new AbortController().signal);
  await vi.advanceTimersByTimeAsync(5 * 60_000);
  expect(await next).toMatch(/ 0$/);
});

test("nor does it wait once it is no longer run here", async () => {
  const left = new AbortController();
  const next = silent().next("acme://a", undefined, left.signal);
  left.abort(new Error("the lease is lost"));
  await expect(next).rejects.toThrow("the lease is lost");
});
