import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { eventStream, isBounded } from "./event-stream.ts";
import { boundedStream, LONGEST_STREAM, Streams } from "./streams.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A stream over which nothing comes, and whether it was given up. */
function silent() {
  const state = { isCancelled: false };
  const body = new ReadableStream({
    cancel: () => {
      state.isCancelled = true;
    },
  });
  return { state, response: new Response(body, { headers: { "content-type": "text/event-stream" } }) };
}

test("a stream ends after its time, whether anything comes or not, and its place is free", async () => {
  const streams = new Streams(1);
  const { state, response } = silent();
  const place = streams.enter("ada");
  const reading = boundedStream(response, place, Date.now() + LONGEST_STREAM).text();
  await vi.advanceTimersByTimeAsync(LONGEST_STREAM - 1_000);
  expect([state.isCancelled, streams.take("ada")]).toEqual([false, undefined]);
  expect(streams.refusal().status).toBe(429);
  // What it is saying just then is said to its end.
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reading).toBe("");
  expect(state.isCancelled).toBe(true);
  expect(streams.take("ada")).toBeDefined();
});

test("the place of a stream of which nobody hears any more is free after a while", async () => {
  const streams = new Streams(2);
  streams.take("ada");
  expect(streams.take("ada")).toBeDefined();
  expect(streams.take("ada")).toBeUndefined();
  // Another caller has places of its own.
  expect(streams.take("bob")).toBeDefined();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(streams.take("ada")).toBeDefined();
});

test("a stream of the edge's own does so by itself, and whoever writes to it hears of it", async () => {
  const streams = new Streams(1);
  const place = streams.enter("ada");
  const heard: string[] = [];
  const response = eventStream(
    (_send, signal) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve(void heard.push("over")))),
    new AbortController().signal,
    { until: Date.now() + LONGEST_STREAM, place: () => place },
  );
  expect(isBounded(response)).toBe(true);
  const reading = response.text();
  await vi.advanceTimersByTimeAsync(LONGEST_STREAM - 1_000);
  expect([heard, streams.take("ada")]).toEqual([[], undefined]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect((await reading).replaceAll(": keepalive\n\n", "")).toBe("");
  expect(heard).toEqual(["over"]);
  expect(streams.take("ada")).toBeDefined();
});

test.each(["left by its reader", "done"])("the place of one that is %s is free at once", async (how) => {
  const streams = new Streams(1);
  const place = streams.enter("ada");
  const done = Promise.withResolvers<void>();
  const terms = { until: Date.now() + LONGEST_STREAM, place: () => place };
  const { body } = eventStream(() => done.promise, new AbortController().signal, terms);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(streams.take("ada")).toBeUndefined();
  if (how === "done") done.resolve();
  else await body?.cancel();
  await vi.advanceTimersByTimeAsync(1);
  expect(streams.take("ada")).toBeDefined();
});
