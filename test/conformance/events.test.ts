/**
 * The checks of the conformance suite's scenarios for events (events-discovery, -poll, -push, -webhook, -webhook-delivery). No
 * package of the suite has them, so they are written again here, for a deployment with the error codes of the sketch that they
 * were made for. The scenarios cause some situations with control tools of the server under test. Other tests cause them
 * for real: a failure on an open stream (`test/events/poll`), a gap on one (`test/events/backup`), `terminated` and the final
 * result (`test/auth/blocked`, `test/events/hooks`), another principal and a restart (`test/events/hooks`), a receiver that is
 * given up (`functions/caller/caller-object`), an address that changes (`test/events/rebinding`).
 * `npm run conformance:events` serves a deployment with such control tools.
 */
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings } from "../auth/support.ts";
import { newSecret, startReceiver } from "../events/receiver.ts";
import { eventsAt, type Notified, streamAt } from "../events/support.ts";
import { type Stack, startStack } from "../support/stack.ts";

const TOKENS = {
  poll: "conformance-token-1",
  push: "conformance-token-2",
  hooks: "conformance-token-3",
  delivery: "conformance-token-4",
  other: "conformance-token-5",
};
const ENDED = { name: "job.ended" };
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
const HOUR = 3_600_000;

let stack: Stack;
beforeAll(async () => {
  const bindings = { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1", EVENT_ERRORS: "sketch" };
  stack = await startStack({ workers: 1, bindings });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const isTime = (text: unknown) => new Date(String(text)).toISOString() === text;

test.concurrent("events-discovery and events-poll", async () => {
  await using caller = await eventsAt(stack.url, TOKENS.poll);
  const { events: types } = await caller.list();
  expect(types.length).toBeGreaterThan(0);
  for (const type of types) {
    expect(type).toMatchObject({
      name: expect.stringMatching(/./),
      description: expect.stringMatching(/./),
      inputSchema: expect.objectContaining({ type: "object" }),
      payloadSchema: expect.objectContaining({ type: "object" }),
    });
    expect([...new Set(type.delivery)].sort()).toEqual([...type.delivery].sort());
    expect(["poll", "push", "webhook"]).toEqual(expect.arrayContaining(type.delivery));
  }
  const first = await caller.poll({ ...ENDED, arguments: {}, cursor: null });
  expect(first).toMatchObject({ events: [], cursor: expect.any(String), truncated: false, hasMore: false });
  expect(first.nextPollMs).toBeGreaterThan(0);
  expect(await caller.poll({ ...ENDED, cursor: first.cursor })).toMatchObject({ cursor: expect.any(String) });
  for (const name of ["shown first", "shown next"]) await caller.start("set_timer", { timer_name: name, seconds: 1 });
  const { events } = await caller.collect(first.cursor, 2);
  for (const event of events) {
    expect(event).toMatchObject({ ...ENDED, eventId: expect.stringMatching(/./), data: expect.any(Object) });
    expect(isTime(event.timestamp)).toBe(true);
  }
  expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(2);
  // Without a cursor, or with null and a maximum age, a poll begins now.
  for (const more of [{ cursor: null }, {}, { cursor: null, maxAgeMs: 300_000 }])
    expect((await caller.poll({ ...ENDED, ...more })).events).toEqual([]);
  const part = await caller.poll({ ...ENDED, cursor: first.cursor, maxEvents: 1 });
  expect([part.events.length, part.hasMore]).toEqual([1, true]);
  const aged = await caller.poll({ ...ENDED, cursor: first.cursor, maxAgeMs: 1 });
  expect(aged).toMatchObject({ truncated: true, cursor: expect.any(String) });
  await expect(caller.poll({ name: "nothing.such", cursor: null })).rejects.toMatchObject({ code: -32011 });
  await expect(caller.poll({ cursor: null })).rejects.toMatchObject({ code: -32602 });
  await expect(caller.poll({ ...ENDED, arguments: { schedule: 12345 } })).rejects.toMatchObject({ code: -32602 });
});

test.concurrent("events-push", async () => {
  const refused = streamAt(stack.url, { name: "nothing.such" }, AbortSignal.timeout(9_000), TOKENS.push);
  expect((await refused.next()).value).toMatchObject({ error: { code: -32011 } });
  await using caller = await eventsAt(stack.url, TOKENS.push);
  const leave = new AbortController();
  const listen = async (seen: Notified[]) => {
    for await (const one of streamAt(stack.url, { ...ENDED, cursor: null }, leave.signal, TOKENS.push)) seen.push(one);
  };
  const all: Notified[][] = [[], [], [], []];
  const streams = all.map((seen) => listen(seen).catch((error) => expect(error.name).toBe("AbortError")));
  const have = (method: string) =>
    until(
      method,
      () => all.every((seen) => seen.some((one) => one.method === `notifications/events/${method}`)),
      60_000,
    );
  await have("active");
  await caller.start("set_timer", { timer_name: "pushed", seconds: 1 });
  await have("event");
  // Heartbeats come even while events keep coming.
  let isBusy = true;
  const work = async () => {
    for (let n = 0; isBusy; n++) {
      await caller.start("set_timer", { timer_name: `busy ${n}`, seconds: 3_600 });
      await caller.start("cancel_job", { job_names: [`timer_busy ${n}`] });
      await delay(500);
    }
  };
  const working = work();
  await have("heartbeat").finally(() => {
    isBusy = false;
  });
  await working;
  expect(all[0]?.filter(({ method }) => method === "notifications/events/event").length).toBeGreaterThan(2);
  for (const { method, params } of all.flat()) {
    expect(method).toMatch(/^notifications\/events\/(active|event|heartbeat)$/);
    expect(params).toMatchObject({ cursor: expect.any(String), _meta: { [SUBSCRIPTION_ID]: 1 } });
  }
  leave.abort();
  await Promise.all(streams);
  const counts = all.map(({ length }) => length);
  await caller.start("set_timer", { timer_name: "unheard", seconds: 1 });
  await until("the end of the job", async () => {
    const { events } = await caller.poll({ ...ENDED, cursor: all[0]?.at(-1)?.params.cursor, maxEvents: 100 });
    return events.some(({ data }) => data.job_name === "timer_unheard");
  });
  expect(all.map(({ length }) => length)).toEqual(counts);
});

const subscriber = async (token: string) => {
  const caller = await eventsAt(stack.url, token);
  const subscribe = (url: string, secret: string | undefined, more: object = {}) =>
    caller.request("events/subscribe", { ...ENDED, delivery: { mode: "webhook", url, secret }, ...more }) as Promise<{
      id: string;
      refreshBefore: string;
    }>;
  return { ...caller, subscribe };
};

test.concurrent("events-webhook", async () => {
  await using caller = await subscriber(TOKENS.hooks);
  await using receiver = await startReceiver(newSecret());
  const { url, secret } = receiver;
  const granted = await caller.subscribe(url, secret, { cursor: null, ttlMs: HOUR });
  expect(granted).toMatchObject({ id: expect.stringMatching(/./), cursor: expect.any(String), truncated: false });
  expect(Date.parse(granted.refreshBefore)).toBeLessThan(Date.now() + HOUR + 60_000);
  // An absent, too short, too long or null time to live is not refused: the subscription gets an expiry.
  for (const ttlMs of [undefined, 1_000, 30 * 24 * HOUR, null])
    expect(isTime((await caller.subscribe(url, secret, { ttlMs })).refreshBefore)).toBe(true);
  expect((await caller.subscribe(url, secret, { cursor: null })).id).toBe(granted.id);
  // The key of a subscription has a URL, arguments and a caller, each different here in turn. An id is not part of it.
  await using second = await subscriber(TOKENS.other);
  const others = [
    await caller.subscribe(`${url}?other`, secret, { id: granted.id }),
    await caller.subscribe(url, secret, { arguments: { kinds: ["timer"] } }),
    await second.subscribe(url, secret),
  ];
  expect(new Set([granted, ...others].map(({ id }) => id)).size).toBe(4);
  for (const wrong of [undefined, "no-secret", `whsec_${Buffer.alloc(8).toString("base64")}`])
    await expect(caller.subscribe(`${url}?wrong`, wrong)).rejects.toMatchObject({ code: -32602 });
  for (const address of ["http://conformance.invalid/insecure", "https://10.0.0.1/"])
    await expect(caller.subscribe(address, secret)).rejects.toMatchObject({ code: -32602 });
  const end = (address: string) => caller.request("events/unsubscribe", { ...ENDED, delivery: { url: address } });
  await end(url);
  for (const address of [url, `${url}?never`]) await expect(end(address)).rejects.toMatchObject({ code: -32011 });
});

test.concurrent("events-webhook-delivery", async () => {
  await using caller = await subscriber(TOKENS.delivery);
  const kinds = { kept: 204, flaky: 503, gone: 410, large: 413, moved: 302 } as const;
  await using started = new AsyncDisposableStack();
  const start = async () => started.use(await startReceiver(newSecret()));
  const target = await start();
  const receivers = await Promise.all(
    Object.values(kinds).map(async (status) => {
      const receiver = await start();
      const attempts: Record<string, string | string[] | undefined>[] = [];
      receiver.state.answer = (response: ServerResponse, { method, headers }) => {
        attempts.push({ method, ...headers });
        const isAgain = status === 503 && attempts.length > 1;
        response.writeHead(isAgain ? 204 : status, status === 302 ? { location: target.url } : {}).end();
      };
      const { id } = await caller.subscribe(receiver.url, receiver.secret, { ttlMs: HOUR });
      return { ...receiver, id, attempts };
    }),
  );
  const wrong = await start();
  wrong.state.echoes = false;
  const refusal = await caller.subscribe(wrong.url, wrong.secret).catch((error) => error);
  expect(refusal).toMatchObject({ code: -32015, data: { reason: "challenge_failed" } });
  expect(Object.keys(refusal.data)).toEqual(["reason"]);
  await caller.start("set_timer", { timer_name: "posted", seconds: 1 });
  const [kept, flaky, gone, large, moved] = receivers as [(typeof receivers)[0], ...typeof receivers];
  // When the flaky and the moved receiver have a second attempt, the others would have had one, too.
  await until("second attempts", () => [flaky, moved].every((one) => (one?.attempts.length ?? 0) > 1), 30_000);
  const eventsOf = (one: typeof kept | undefined) => one?.delivered.filter(({ body }) => body.type === undefined);
  expect([kept, gone, large].map((one) => eventsOf(one)?.length)).toEqual([1, 1, 1]);
  const gap = await until("the gap", () => large?.delivered.find(({ body }) => body.type === "gap"));
  expect(gap).toMatchObject({ id: expect.stringMatching(/^msg_gap_./), body: { cursor: expect.any(String) } });
  expect([target.delivered, wrong.delivered]).toEqual([[], []]);
  for (const { id, attempts, forged } of receivers) {
    expect(forged).toEqual([]); // each request was signed, the challenge too
    for (const attempt of attempts) {
      const { method, "content-type": type, "x-mcp-subscription-id": subscription } = attempt;
      expect([method, type, subscription]).toEqual(["POST", "application/json", id]);
      expect(Number(attempt["content-length"])).toBeLessThan(256 * 1_024);
    }
  }
  const [before, after] = flaky?.attempts ?? [];
  expect(after?.["webhook-id"]).toBe(before?.["webhook-id"]);
  for (const header of ["webhook-timestamp", "webhook-signature"]) expect(after?.[header]).not.toBe(before?.[header]);
});
