import { afterEach, expect, test, vi } from "vitest";
import { Updates } from "./updates.ts";

afterEach(() => vi.useRealTimers());

/** The changes at a server that never confirms a subscription. */
const silent = () => new Updates(() => ({ confirmation: new Promise(() => {}), end() {} }));

test("a job does not wait for longer than five minutes for a subscription that the server never confirms", async () => {
  vi.useFakeTimers();
  const next = silent().next("acme://a", undefined, new AbortController().signal);
  await vi.advanceTimersByTimeAsync(5 * 60_000);
  expect(await next).toEqual(expect.any(String));
});

test("nor does it wait once it is run elsewhere", async () => {
  const stop = new AbortController();
  const next = silent().next("acme://a", undefined, stop.signal);
  stop.abort(new Error("the lease is lost"));
  await expect(next).rejects.toThrow("the lease is lost");
});

test("a job learns why its subscription has ended before its confirmation", async () => {
  const confirmation = Promise.withResolvers<void>();
  const updates = new Updates(() => ({
    confirmation: confirmation.promise,
    end: () => confirmation.reject(new Error("nobody waits")),
  }));
  const next = updates.next("acme://a", undefined, new AbortController().signal);
  updates.close(new Error("the server has forgotten the session"));
  await expect(next).rejects.toThrow("the server has forgotten the session");
});

test("a change between two subscriptions to a resource, of which nobody was notified, is reported", async () => {
  vi.useFakeTimers();
  const updates = new Updates(() => ({ confirmation: Promise.resolve(), end() {} }));
  const { signal } = new AbortController();
  const since = await updates.next("acme://a", undefined, signal);
  await vi.advanceTimersByTimeAsync(60_000);
  const next = updates.next("acme://a", since, signal);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await Promise.race([next, "it still waits"])).toEqual(
    expect.not.stringMatching(`^(${since}|it still waits)$`),
  );
});

test("jobs that different workers run wait for a change, too, instead of reporting one after another", async () => {
  vi.useFakeTimers();
  const [updates, otherUpdates] = [1, 2].map(
    () => new Updates(() => ({ confirmation: Promise.resolve(), end() {} })),
  ) as [Updates, Updates];
  const { signal } = new AbortController();
  const first = await updates.next("acme://a", undefined, signal);
  const both = await otherUpdates.next("acme://a", first, signal);
  const next = updates.next("acme://a", both, signal);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await Promise.race([next, "it waits"])).toBe("it waits");
  updates.onChange("acme://a");
  expect(await next).not.toBe(both);
});
