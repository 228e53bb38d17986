/** Events of a caller's jobs, polled and streamed, with durable cursors. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings } from "../auth/support.ts";
import { startGate } from "../support/gate.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { accept, tasksAt } from "../tasks/support.ts";
import { eventsAt, type Notified, streamAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };

let resonate: Resonate;
let stack: Stack;
beforeAll(async () => {
  resonate = await startResonate();
  stack = await startStack({ resonate, workers: 1, bindings: bearerBindings(TOKENS) });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

const ENDED = { name: "job.ended" };

test("the extension is advertised, in the form of the earlier sketch too, and lists the types of events", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  expect(ada.client.getServerCapabilities()).toMatchObject({ extensions: { "io.modelcontextprotocol/events": {} } });
  const { result } = await rpc(stack.url, "server/discover", {}, { token: TOKENS.ada });
  expect(result.capabilities.events).toEqual({});
  const { events } = await ada.list();
  expect(events).toContainEqual(
    expect.objectContaining({
      name: "job.ended",
      delivery: expect.arrayContaining(["poll", "push"]),
      inputSchema: expect.objectContaining({ type: "object" }),
      payloadSchema: expect.objectContaining({ type: "object" }),
    }),
  );
});

test("a caller gets the ends of its own jobs only, once each", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  await using bob = await eventsAt(stack.url, TOKENS.bob);
  const [begin, bobs] = [(await ada.poll(ENDED)).cursor, (await bob.poll(ENDED)).cursor];
  await ada.start("set_timer", { timer_name: "one", seconds: 1 });
  await bob.start("set_timer", { timer_name: "other", seconds: 1 });
  const { events, cursor } = await ada.collect(begin, 1);
  expect(events).toMatchObject([
    {
      eventId: "ended_timer_one",
      name: "job.ended",
      data: { job_name: "timer_one", kind: "timer", status: "complete", result: expect.anything() },
    },
  ]);
  expect(Date.parse(events[0]?.timestamp ?? "")).toBe(Date.parse(events[0]?.data.finished_at));
  // The old cursor gives the same event again, and the new cursor gives none.
  expect((await ada.poll({ ...ENDED, cursor: begin })).events).toEqual(events);
  expect((await ada.poll({ ...ENDED, cursor })).events).toEqual([]);
  expect((await bob.collect(bobs, 1)).events.map(({ data }) => data.job_name)).toEqual(["timer_other"]);
});

test("the end of a job that is started again after `forget_jobs` is an event", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await ada.poll(ENDED);
  const again = ["set_timer", { timer_name: "again", seconds: 1 }] as const;
  await ada.start(...again);
  const first = await ada.collect(cursor, 1);
  const { structuredContent } = await ada.start("forget_jobs", { job_names: ["timer_again"] });
  // The standalone server cannot remove promises.
  if ((structuredContent as { hidden?: string[] }).hidden) return;
  await ada.start(...again);
  const second = await ada.collect(first.cursor, 1);
  const told = [...first.events, ...second.events];
  expect(told.map(({ data }) => [data.job_name, data.status])).toEqual(Array(2).fill(["timer_again", "complete"]));
  expect(new Set(told.map(({ eventId }) => eventId)).size).toBe(2);
  // What the first event says is not taken from the second job.
  const { events } = await ada.poll({ ...ENDED, cursor });
  expect(events.map(({ data }) => data.finished_at)).toEqual(told.map(({ data }) => data.finished_at));
});

test("arguments narrow events by job and kind, and events beyond `maxEvents` come with the next poll", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await ada.poll(ENDED);
  const names = ["n1", "n2", "n3"];
  for (const name of names) await ada.start("set_timer", { timer_name: name, seconds: 1 });
  await ada.start("start_gathering", { latitude: 47.6, longitude: -122.3, year: 2013, month: 2 });
  expect((await ada.collect(cursor, 4)).events.length).toBe(4);
  const poll = (more: object) => ada.poll({ ...ENDED, cursor, ...more });
  const only = await poll({ arguments: { job_names: ["timer_n2", "timer_none"] } });
  expect(only.events.map(({ data }) => data.job_name)).toEqual(["timer_n2"]);
  const weather = await poll({ arguments: { kinds: ["weather_data"] } });
  // A gathering is shared by all callers, and its end is an event for each caller who started it.
  expect(weather.events).toMatchObject([{ data: { kind: "weather_data", status: "complete" } }]);
  const first = await poll({ maxEvents: 3 });
  expect([first.events.length, first.hasMore]).toEqual([3, true]);
  const rest = await poll({ cursor: first.cursor });
  expect([rest.events.length, rest.hasMore]).toEqual([1, false]);
});

test("an unknown cursor, or an age that leaves events out, gives a truncated answer", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await ada.poll(ENDED);
  const strange = await ada.poll({ ...ENDED, cursor: "of another log" });
  expect(strange).toMatchObject({ truncated: true, cursor });
  await ada.start("set_timer", { timer_name: "old", seconds: 1 });
  await ada.collect(cursor, 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await ada.poll({ ...ENDED, cursor, maxAgeMs: 1 })).toMatchObject({ truncated: true, events: [] });
});

test("a wrong request is refused with the codes of the extension", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  await expect(ada.poll({ name: "nothing.such" })).rejects.toMatchObject({ code: -32023, data: { kind: "event" } });
  for (const params of [
    { ...ENDED, arguments: { job_name: "x" } },
    { ...ENDED, arguments: { job_names: [] } },
    { ...ENDED, arguments: { labels: [] } },
    { ...ENDED, maxAgeMs: -1 },
    { ...ENDED, cursor: 7 },
    {},
  ])
    await expect(ada.poll(params)).rejects.toMatchObject({ code: -32602 });
  await expect(ada.poll({ ...ENDED, arguments: { kinds: ["timers"] } })).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("no job is of the kind timers. There are: "),
  });
  const stream = streamAt(stack.url, { name: "nothing.such" }, AbortSignal.timeout(5_000), TOKENS.ada);
  expect((await stream.next()).value).toMatchObject({ error: { code: -32023 } });
});

test("a stream sends each end as it comes, including that of a cancelled job", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await ada.poll(ENDED);
  const leave = new AbortController();
  const seen: Notified[] = [];
  for await (const message of streamAt(stack.url, { ...ENDED, cursor }, leave.signal, TOKENS.ada)) {
    seen.push(message);
    if (message.method === "notifications/events/active") {
      await ada.start("set_timer", { timer_name: "streamed", seconds: 1 });
      await ada.start("set_timer", { timer_name: "cancelled", seconds: 600 });
      await ada.start("cancel_job", { job_names: ["timer_cancelled"] });
    }
    if (seen.length === 3) break;
  }
  leave.abort();
  // Neither event has waited for the next heartbeat.
  expect(seen.map(({ method }) => method)).toEqual([
    "notifications/events/active",
    "notifications/events/event",
    "notifications/events/event",
  ]);
  expect(seen.every(({ params }) => params._meta["io.modelcontextprotocol/subscriptionId"] === 1)).toBe(true);
  expect(seen.slice(1).map(({ params }) => [params.data.job_name, params.data.status])).toEqual([
    ["timer_cancelled", "cancelled"],
    ["timer_streamed", "complete"],
  ]);
  // A poll from the first event's cursor gives the second event.
  const { events } = await ada.poll({ ...ENDED, cursor: seen[1]?.params.cursor });
  expect(events.map(({ data }) => data.job_name)).toEqual(["timer_streamed"]);
});

test("a caller gets a job's question and its progress as events", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  const [asked, told] = [{ name: "job.question" }, { name: "job.progress" }];
  const [questions, progress] = [(await ada.poll(asked)).cursor, (await ada.poll(told)).cursor];
  const tasks = tasksAt(stack.url, TOKENS.ada);
  const args = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2015-12" };
  // The last month is slow, so that progress is reported while the job runs.
  stack.archive.control.inject({ fault: { kind: "slow", ms: 3_000 }, month: "2015-12" });
  const { taskId } = await tasks.call("weather_range", args);
  const { events } = await ada.collect(questions, 1, asked);
  expect(events).toMatchObject([
    {
      name: "job.question",
      data: { kind: "weather_range", message: expect.stringContaining("48 requests"), answered_by: "user" },
    },
  ]);
  // There is one event for the question.
  expect((await ada.poll({ ...asked, cursor: questions })).events).toEqual(events);
  await tasks.update(taskId, { [events[0]?.data.question]: accept({ confirm: true }) });
  const { events: far } = await ada.collect(progress, 1, told);
  expect(far[0]).toMatchObject({ name: "job.progress", data: { job_name: events[0]?.data.job_name } });
  await tasks.reaches(taskId, "completed");
});

test("reading events again counts like a look at each of their jobs; a stream waits at the rate limit", async () => {
  const bindings = { ...bearerBindings(TOKENS), RATE_LIMIT: "0" };
  await using own = await startStack({ resonate, workers: 0, bindings, beside: { RATE_LIMIT: "8" } });
  const COUNT = 30;
  const begins = new Map<string, string>();
  for (const [who, token] of Object.entries(TOKENS)) {
    await using told = await eventsAt(own.url, token);
    const { cursor } = await told.poll(ENDED);
    begins.set(who, cursor);
    const names = Array.from({ length: COUNT }, (_, n) => `read again ${n}`);
    await Promise.all(names.map((timer_name) => told.start("set_timer", { timer_name, seconds: 3_600 })));
    await told.start("cancel_job", { job_names: names.map((name) => `timer_${name}`) });
    expect((await told.collect(cursor, COUNT)).events).toHaveLength(COUNT);
  }
  const poll = async (who: keyof typeof TOKENS) => {
    const params = { ...ENDED, cursor: begins.get(who), maxEvents: COUNT };
    return (await rpc(own.beside, "events/poll", params, { token: TOKENS[who] })).status;
  };
  expect([await poll("ada"), await poll("ada")]).toEqual([200, 429]);

  const end = new AbortController();
  const params = { ...ENDED, cursor: begins.get("bob"), maxEvents: 5 };
  let events = 0;
  const read = async () => {
    for await (const { method } of streamAt(own.beside, params, end.signal, TOKENS.bob))
      if (method === "notifications/events/event") events += 1;
  };
  const reading = read().catch(() => {});
  await until("the events that fit", () => events >= 25);
  // These took the limit of this minute: the last five events, and a poll, must wait for the next minute.
  expect([await poll("bob"), events]).toEqual([429, 25]);
  end.abort();
  await reading;
});

test("a stream reports that its events cannot be read for a while, and then goes on", async () => {
  await using gate = await startGate(resonate.url);
  const bindings = { ...bearerBindings(TOKENS), RESONATE_URL: gate.url };
  await using own = await startStack({ resonate, workers: 0, bindings });
  await using ada = await eventsAt(own.url, TOKENS.ada);
  const { cursor } = await ada.poll(ENDED);
  await ada.start("set_timer", { timer_name: "unread", seconds: 3_600 });
  await ada.start("cancel_job", { job_names: ["timer_unread"] });
  expect((await ada.collect(cursor, 1)).events).toHaveLength(1);
  await gate.close();
  const end = new AbortController();
  const told: string[] = [];
  for await (const { method, params } of streamAt(own.url, { ...ENDED, cursor }, end.signal, TOKENS.ada)) {
    told.push(`${method}`.slice("notifications/events/".length));
    if (method?.endsWith("/error")) {
      expect(params.error).toMatchObject({ code: -32603, message: expect.stringContaining("Resonate") });
      await gate.open();
    }
    if (method?.endsWith("/event")) break;
  }
  expect([told[0], ...told.slice(-2)]).toEqual(["error", "active", "event"]);
});

test("an end while the edge was down is an event after an earlier cursor", async () => {
  await using ada = await eventsAt(stack.url, TOKENS.ada);
  const { cursor } = await ada.poll(ENDED);
  await ada.start("set_timer", { timer_name: "meanwhile", seconds: 2 });
  await stack.edge.kill();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await stack.edge.start();
  const { events } = await ada.collect(cursor, 1);
  expect(events.map(({ data }) => data.job_name)).toEqual(["timer_meanwhile"]);
});

test("in a deployment that does not distinguish callers, all get the same events", async () => {
  await using open = await startStack({ resonate, workers: 1 });
  await using anyone = await eventsAt(open.url);
  const { cursor } = await anyone.poll(ENDED);
  await anyone.start("set_timer", { timer_name: "anyone's", seconds: 1 });
  expect((await anyone.collect(cursor, 1)).events).toMatchObject([{ data: { job_name: "timer_anyone's" } }]);
});
