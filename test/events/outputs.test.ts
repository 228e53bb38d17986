/** Events from running jobs: partial results and the author's own events, once each. */
import { expect, test } from "vitest";
import { bearerBindings } from "../auth/support.ts";
import { startStack } from "../support/stack.ts";
import { newSecret, startReceiver } from "./receiver.ts";
import { eventsAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };

test("an author's events and partial results come in order, once each, even if the worker is killed", async () => {
  await using stack = await startStack({
    programs: { edge: "test/events/outputs/edge.ts", worker: "test/events/outputs/worker.ts" },
    bindings: { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1" },
  });
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  await using bob = await eventsAt(stack.url, TOKENS.bob);
  await using receiver = await startReceiver(newSecret());
  const { url, secret, delivered } = receiver;
  expect((await ada.list()).events).toContainEqual(
    expect.objectContaining({
      name: "price.changed",
      payloadSchema: expect.objectContaining({
        properties: expect.objectContaining({
          payload: expect.objectContaining({ properties: { price: { type: "number", maximum: 100 } } }),
        }),
      }),
    }),
  );
  const [own, output] = [{ name: "price.changed" }, { name: "job.output" }];
  const { cursor } = await ada.poll(own);
  await ada.poll(output);
  const bobs = (await bob.poll(own)).cursor;
  await ada.request("events/subscribe", { ...own, delivery: { url, secret } });
  const prices = [10, 12, 11];
  const started = ada.start("watch_price", { of: "tea", prices });
  expect((await ada.collect(cursor, 1, own)).events[0]).toMatchObject({
    eventId: "event_watch_price_tea_1",
    data: { job_name: "watch_price_tea", kind: "watch_price", payload: { price: 10 } },
  });
  const [worker] = stack.workers;
  await worker?.kill();
  await worker?.start();
  expect(await started).toMatchObject({ structuredContent: { result: { last: 11 } } });
  const told = await ada.collect(cursor, prices.length, own);
  expect(told.events.map(({ data }) => data.payload.price)).toEqual(prices);
  expect(new Set(told.events.map(({ eventId }) => eventId)).size).toBe(prices.length);
  const outputs = await ada.collect(cursor, prices.length, output);
  expect(outputs.events.map(({ data }) => data.output.seen)).toEqual(prices);
  const { events: ended } = await ada.collect(cursor, 1);
  expect(ended).toMatchObject([{ eventId: "ended_watch_price_tea" }]);
  await expect.poll(() => new Set(delivered.map(({ id }) => id)).size, { timeout: 30_000 }).toBe(prices.length);
  expect(delivered.map(({ body }) => body.data.payload.price).sort()).toEqual([...prices].sort());
  expect((await bob.poll({ ...own, cursor: bobs })).events).toEqual([]);
  // The author's events are not among the partial results.
  const { structuredContent } = await ada.start("probe_status", { job_names: ["watch_price_tea"], partial_from: 0 });
  expect(structuredContent).toMatchObject({
    statuses: [{ partial: { values: prices.map((seen) => ({ seen })), next_offset: 2 * prices.length } }],
  });
  // A payload that does not match its schema fails the job with an explanation.
  const wrong = await ada.start("watch_price", { of: "gold", prices: [1_000] });
  expect(wrong.content[0]).toMatchObject({ text: expect.stringMatching(/ctx\.event\(.*its payload does not fit/) });
});

test("a type of events that a new deployment lacks is reported as not found, and its web hooks are terminated", async () => {
  const programs = { edge: "test/events/outputs/edge.ts", worker: "test/events/outputs/worker.ts" };
  const bindings = { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1" };
  await using stack = await startStack({ programs, bindings, workers: 0 });
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  await using receiver = await startReceiver(newSecret());
  await using kept = await startReceiver(newSecret());
  const subscribe = (name: string, { url, secret }: typeof receiver) =>
    ada.request("events/subscribe", { name, delivery: { url, secret } });
  await subscribe("price.changed", receiver);
  await subscribe("job.ended", kept);
  await stack.edge.kill();
  programs.edge = "functions/index.ts";
  await stack.edge.start();
  const gone = { code: -32023, data: { kind: "event" } };
  expect((await ada.list()).events.map(({ name }) => name)).not.toContain("price.changed");
  await expect(ada.poll({ name: "price.changed" })).rejects.toMatchObject(gone);
  await ada.start("set_timer", { timer_name: "another", seconds: 3_600 });
  await ada.start("cancel_job", { job_names: ["timer_another"] });
  await expect
    .poll(() => [receiver, kept].map(({ delivered }) => delivered.length), { timeout: 30_000 })
    .toEqual([1, 1]);
  expect(receiver.delivered[0]?.body).toEqual({ type: "terminated", error: { ...gone, message: "NotFound" } });
  expect(kept.delivered[0]?.body).toMatchObject({ name: "job.ended" });
  await expect(subscribe("price.changed", receiver)).rejects.toMatchObject(gone);
});
