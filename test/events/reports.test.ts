/** Workers' reports to the edge: ends of jobs that the server does not push, and jobs that durable functions start. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { reportToken } from "../../core/jobs/reports.ts";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { send } from "../limits/support.ts";
import { type GatedStack, startGatedStack } from "../support/stack.ts";
import { newSecret, startReceiver } from "./receiver.ts";
import { eventsAt } from "./support.ts";

const TOKENS = {
  ada: "static-token-of-ada",
  bob: "static-token-of-bob",
  eve: "static-token-of-eve",
  fay: "static-token-of-fay",
  gus: "static-token-of-gus",
};
const VIEW_KEY = "v".repeat(32);
/** How long a test waits, in milliseconds: shorter than the edge's own interval to look for ends. */
const NOTIFICATION_TIMEOUT_MS = 25_000;

let stack: GatedStack;
const env: Record<string, string> = { VIEW_KEY };
beforeAll(async () => {
  stack = await startGatedStack({
    workers: 0,
    env,
    programs: { edge: "test/limits/fixture/limits-edge.ts", worker: "test/limits/fixture/limits-worker.ts" },
    bindings: {
      ...bearerBindings(TOKENS),
      ALLOW_LOOPBACK_CALLBACKS: "1",
      MAX_STORED_BYTES: "1000000",
      VIEW_KEY,
    },
  });
  // The server's pushed messages do not reach the edge.
  stack.gate.muteStreams(true);
  env.EDGE_URL = stack.origin;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("each caller who started a job, and no other, gets its end at once", async () => {
  const place = { latitude: 47.6062, longitude: -122.3321, year: 2014, month: 7 };
  await using all = new AsyncDisposableStack();
  const subscribed = async (token: string) => {
    const [client, receiver] = [all.use(await eventsAt(stack.url, token)), all.use(await startReceiver(newSecret()))];
    const { url, secret, delivered } = receiver;
    await client.request("events/subscribe", { name: "job.ended", delivery: { url, secret } });
    return { start: client.start, delivered };
  };
  const ada = await subscribed(TOKENS.ada);
  const bob = await subscribed(TOKENS.bob);
  const eve = await subscribed(TOKENS.eve);
  await ada.start("start_gathering", place);
  await bob.start("start_gathering", place);
  await eve.start("set_timer", { timer_name: "mine", seconds: 1 });
  await stack.addWorker();
  const callers = [ada, bob, eve];
  await until("the ends", () => callers.every(({ delivered }) => delivered.length > 0), NOTIFICATION_TIMEOUT_MS);
  const month = "ended_weather_data_47%2e6062_-122%2e3321_2014_7";
  expect(callers.map(({ delivered }) => delivered.map(({ id }) => id))).toEqual([
    [month],
    [month],
    ["ended_timer_mine"],
  ]);
});

test("a durable function's child job is only in its caller's list, counts once, and its end is no event", async () => {
  const [fay, gus] = [callerAt(stack.url, TOKENS.fay), callerAt(stack.url, TOKENS.gus)];
  await using client = await eventsAt(stack.url, TOKENS.fay);
  const { cursor } = await client.poll({ name: "job.ended", cursor: null });
  expect(await fay.call("hoard", { name: "one", step: 0, told: 0, child: 5_000 })).toMatchObject({
    status: "complete",
  });
  const listed = async (caller: TestCaller) =>
    (await caller.call("list_jobs")).jobs.map(({ job_name }: { job_name: string }) => job_name).sort();
  await expect.poll(() => listed(fay), { timeout: NOTIFICATION_TIMEOUT_MS }).toEqual(["hoard_one", "kept_one child"]);
  expect(await listed(gus)).toEqual([]);
  expect((await fay.call("list_jobs")).stored.bytes).toBeLessThan(9_000);
  const { events, cursor: after } = await client.collect(cursor, 1);
  expect(events.map(({ eventId }) => eventId)).toEqual(["ended_hoard_one"]);
  expect((await client.poll({ name: "job.ended", cursor: after })).events).toEqual([]);
});

test("the route refuses a request without the token before its body, and accepts only a well-formed batch", async () => {
  const report = (headers: Record<string, string>, body: unknown) =>
    send(`${stack.origin}/reports`, { headers, body }).then(({ status }) => status);
  const { key } = await callerOf("eve");
  const batch = { ended: { [key]: [`${stack.namespace}${key}timer_none`] } };
  const token = await reportToken(VIEW_KEY);
  const known = { authorization: `Bearer ${token}` };
  for (const shown of ["", TOKENS.eve, VIEW_KEY, await reportToken("w".repeat(32)), `${token.slice(0, -3)}AA=`]) {
    expect(await report(shown === "" ? {} : { authorization: `Bearer ${shown}` }, batch)).toBe(401);
    // The refusal comes even before the body has arrived.
    expect(await report({ authorization: `Bearer ${shown}`, "content-length": "1000000000" }, undefined)).toBe(401);
  }
  expect(await report(known, batch)).toBe(204);
  expect(await report(known, { counts: [1] })).toBe(204);
  for (const body of ["{", "[]", { ended: ["timer_none"] }, { ended: { [key]: "timer_none" } }])
    expect(await report(known, body)).toBe(400);
  expect(await report(known, "x".repeat(1_000_001))).toBe(413);
  // A report cannot put another caller's job into a caller's list.
  const eve = callerAt(stack.url, TOKENS.eve);
  const { key: other } = await callerOf("fay");
  expect(await report(known, { started: { [key]: [`${stack.namespace}${other}hoard_one`] } })).toBe(204);
  expect(JSON.stringify(await eve.call("list_jobs"))).not.toContain("hoard");
});
