import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { boundedStream, eventStream, MAX_STREAM_MS } from "./event-stream.ts";
import { StreamSlots } from "./stream-slots.ts";

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

test("a silent stream ends at its deadline, which frees its slot", async () => {
  const slots = new StreamSlots(1);
  const { state, response } = silent();
  const slot = slots.enter("ada");
  const reading = boundedStream(response, { until: Date.now() + MAX_STREAM_MS, slot: () => slot }).text();
  await vi.advanceTimersByTimeAsync(MAX_STREAM_MS - 1_000);
  expect([state.isCancelled, slots.take("ada")]).toEqual([false, undefined]);
  expect(slots.refusal().status).toBe(429);
  // A message that is being sent at the deadline may take a moment.
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reading).toBe("");
  expect(state.isCancelled).toBe(true);
  expect(slots.take("ada")).toBeDefined();
});

test("the slot of a stream that ended unnoticed is free after a while", async () => {
  const slots = new StreamSlots(2);
  slots.take("ada");
  expect(slots.take("ada")).toBeDefined();
  expect(slots.take("ada")).toBeUndefined();
  // Another caller has slots of its own.
  expect(slots.take("bob")).toBeDefined();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(slots.take("ada")).toBeDefined();
});

test("a stream of the edge itself ends at its deadline, and its writer's signal aborts", async () => {
  const slots = new StreamSlots(1);
  const slot = slots.enter("ada");
  const heard: string[] = [];
  const terms = { until: Date.now() + MAX_STREAM_MS, slot: () => slot };
  const response = eventStream(
    (_send, signal) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve(void heard.push("over")))),
    new AbortController().signal,
    terms,
  );
  const reading = response.text();
  await vi.advanceTimersByTimeAsync(MAX_STREAM_MS - 1_000);
  expect([heard, slots.take("ada")]).toEqual([[], undefined]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect((await reading).replaceAll(": keepalive\n\n", "")).toBe("");
  expect(heard).toEqual(["over"]);
  expect(slots.take("ada")).toBeDefined();
});

test.each(["left by its reader", "done"])("the slot of a stream that is %s is free at once", async (how) => {
  const slots = new StreamSlots(1);
  const slot = slots.enter("ada");
  const done = Promise.withResolvers<void>();
  const terms = { until: Date.now() + MAX_STREAM_MS, slot: () => slot };
  const { body } = eventStream(() => done.promise, new AbortController().signal, terms);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(slots.take("ada")).toBeUndefined();
  if (how === "done") done.resolve();
  else await body?.cancel();
  await vi.advanceTimersByTimeAsync(1);
  expect(slots.take("ada")).toBeDefined();
});
