import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { boundedStream, eventStream, MAX_STREAM_MS } from "./event-stream.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A silent stream, and whether it was cancelled. */
function silent() {
  const state = { isCancelled: false };
  const body = new ReadableStream({
    cancel: () => {
      state.isCancelled = true;
    },
  });
  return { state, response: new Response(body, { headers: { "content-type": "text/event-stream" } }) };
}

/** The terms of a stream whose slot counts how often it is renewed and released. */
function terms() {
  const slot = { renew: vi.fn(), release: vi.fn() };
  return { slot, terms: { until: Date.now() + MAX_STREAM_MS, slot: () => slot } };
}

test("a silent stream ends at its deadline, which frees its slot", async () => {
  const { state, response } = silent();
  const { slot, terms: bounded } = terms();
  const reading = boundedStream(response, bounded).text();
  await vi.advanceTimersByTimeAsync(MAX_STREAM_MS - 1_000);
  expect(state.isCancelled).toBe(false);
  expect(slot.renew).toHaveBeenCalled();
  expect(slot.release).not.toHaveBeenCalled();
  // A message that is being sent at the deadline may take a moment.
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reading).toBe("");
  expect(state.isCancelled).toBe(true);
  expect(slot.release).toHaveBeenCalled();
});

test("a stream of the edge itself ends at its deadline, and its writer's signal aborts", async () => {
  const { slot, terms: bounded } = terms();
  const heard: string[] = [];
  const response = eventStream(
    (_send, signal) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve(void heard.push("over")))),
    new AbortController().signal,
    bounded,
  );
  const reading = response.text();
  await vi.advanceTimersByTimeAsync(MAX_STREAM_MS - 1_000);
  expect(heard).toEqual([]);
  expect(slot.release).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(10_000);
  expect((await reading).replaceAll(": keepalive\n\n", "")).toBe("");
  expect(heard).toEqual(["over"]);
  expect(slot.release).toHaveBeenCalled();
});

test.each(["left by its reader", "done"])("the slot of a stream that is %s is free at once", async (how) => {
  const { slot, terms: bounded } = terms();
  const done = Promise.withResolvers<void>();
  const { body } = eventStream(() => done.promise, new AbortController().signal, bounded);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(slot.release).not.toHaveBeenCalled();
  if (how === "done") done.resolve();
  else await body?.cancel();
  await vi.advanceTimersByTimeAsync(1);
  expect(slot.release).toHaveBeenCalled();
});
