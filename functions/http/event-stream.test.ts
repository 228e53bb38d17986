import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { boundedStream, eventStream, MAX_STALL_MS, MAX_STREAM_MS, type StreamWriter } from "./event-stream.ts";

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
    ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(void heard.push("over")))),
    { disconnected: new AbortController().signal, terms: bounded },
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
  const { body } = eventStream(() => done.promise, { disconnected: new AbortController().signal, terms: bounded });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(slot.release).not.toHaveBeenCalled();
  if (how === "done") done.resolve();
  else await body?.cancel();
  await vi.advanceTimersByTimeAsync(1);
  expect(slot.release).toHaveBeenCalled();
});

/** A stream that nobody reads, and how much of it waits. */
function unread(send: (writer: StreamWriter) => Promise<void>) {
  const { slot, terms: bounded } = terms();
  const signals: AbortSignal[] = [];
  const run = (writer: StreamWriter) => {
    signals.push(writer.signal);
    return send(writer);
  };
  const { body } = eventStream(run, { disconnected: new AbortController().signal, terms: bounded });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  return { slot, reader, signal: signals[0] as AbortSignal };
}

const never = new Promise<void>(() => {});
const progress = (n: number) => ({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { progressToken: "x".repeat(1_000), progress: n },
});

test("a stream that nobody reads holds a bounded number of bytes, and ends after a while", async () => {
  let sent = 0;
  const { slot, reader, signal } = unread(async ({ send }) => {
    for (; sent < 10_000; sent++) send(progress(sent));
    await never;
  });
  await vi.advanceTimersByTimeAsync(MAX_STALL_MS - 4_000);
  expect(signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(8_000);
  expect(signal.aborted).toBe(true);
  expect(slot.release).toHaveBeenCalled();
  await expect(reader.read()).rejects.toThrow("not read");
});

test("a slow reader misses progress, gets each other message, and keeps its stream", async () => {
  const { reader, signal } = unread(async ({ send, ready }) => {
    for (let n = 0; n < 200; n++) send(progress(n));
    for (let n = 0; n < 300; n++) {
      send({ event: n, text: "x".repeat(1_000) });
      await ready();
    }
  });
  let text = "";
  for (;;) {
    const reading = reader.read();
    await vi.advanceTimersByTimeAsync(500);
    const { done, value } = await reading;
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  expect(signal.aborted).toBe(true);
  expect(text.match(/"event":\d+/g)).toHaveLength(300);
  expect(text.match(/"progress":\d+/g)?.length).toBeLessThan(100);
});

test("a stream ends when what its reader has not read is too much", async () => {
  const { slot, signal } = unread(async ({ send }) => {
    for (let n = 0; n < 3; n++) send({ text: "x".repeat(900_000) });
    await never;
  });
  await vi.advanceTimersByTimeAsync(1);
  expect(signal.aborted).toBe(true);
  expect(slot.release).toHaveBeenCalled();
});

test("an answer that nobody reads keeps its slot, until it is given up", async () => {
  const { slot } = unread(async ({ send }) => send({ text: "x".repeat(900_000) }));
  await vi.advanceTimersByTimeAsync(MAX_STALL_MS - 4_000);
  expect(slot.release).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(8_000);
  expect(slot.release).toHaveBeenCalled();
});

test("a stream of the SDK that nobody reads is cancelled after a while", async () => {
  const { slot, terms: bounded } = terms();
  let isCancelled = false;
  const stream = new ReadableStream({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: {}\n\n")),
    cancel: () => {
      isCancelled = true;
    },
  });
  boundedStream(new Response(stream, { headers: { "content-type": "text/event-stream" } }), bounded);
  await vi.advanceTimersByTimeAsync(MAX_STALL_MS - 4_000);
  expect(isCancelled).toBe(false);
  await vi.advanceTimersByTimeAsync(8_000);
  expect(isCancelled).toBe(true);
  expect(slot.release).toHaveBeenCalled();
});
