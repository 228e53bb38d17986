import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { action, type Message, type Poll, promise, type Server, startServer, unique } from "./server.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const LEASE_MS = 60_000;

/** The time until a deadline that must not pass before a few more calls, even on a slow machine. */
const SHORT_DEADLINE_MS = 1_500;

/** Creates a job that is dispatched to `address`, or else to any connection of `group`. */
async function job({
  group,
  address = `poll://any@${group}`,
  timeoutAt = Date.now() + 60_000,
}: JobOptions): Promise<string> {
  const id = unique("job");
  await server.call("promise.create", promise(id, { timeoutAt, tags: { "resonate:target": address } }));
  return id;
}

interface JobOptions {
  group?: string;
  address?: string;
  timeoutAt?: number;
}

const settle = (id: string) => server.call("promise.settle", { id, state: "resolved", value: { data: "MQ==" } });
const acquire = (id: string, version = 0, ttl = LEASE_MS) =>
  server.call("task.acquire", { id, version, pid: "p1", ttl });
const listen = (awaited: string, group: string, id: string) =>
  server.call("promise.register_listener", { awaited, address: `poll://uni@${group}/${id}` });
const execute = (id: string, version = 0) => ({ kind: "execute", data: { task: { id, version } } });
const ids = (messages: Message[]) => messages.map(({ data }) => (data.task ?? data.promise).id);

/** The ids of all messages to `poll` up to now: it sends a marker, and waits until the marker arrives. */
async function soFar(poll: Poll, group: string, id: string): Promise<string[]> {
  const marker = unique("marker");
  await server.call("promise.create", promise(marker));
  await listen(marker, group, id);
  await settle(marker);
  await until("the marker", () => ids(poll.inbox).includes(marker));
  return ids(poll.inbox).filter((id) => id !== marker);
}

describe("a poll connection", () => {
  test("is an event stream that opens before the first message", async () => {
    using poll = await server.poll(unique("g"), "1");
    expect(poll.contentType).toContain("text/event-stream");
  });

  test("may have any characters in its group and id", async () => {
    const group = unique("g");
    const [one, two] = ["a/b c", "a%2Fb"];
    using poll = await server.poll(group, one);
    using other = await server.poll(group, two);
    expect([poll.inbox, other.inbox]).toEqual([[], []]);
  });
});

describe("a task", () => {
  test("is dispatched to its group", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const id = await job({ group });
    expect(await poll.next()).toMatchObject(execute(id));
  });

  test("is not dispatched to another group", async () => {
    const [group, other] = [unique("g"), unique("g")];
    using poll = await server.poll(group, "1");
    using elsewhere = await server.poll(other, "1");
    const id = await job({ group });
    expect(await poll.next()).toMatchObject(execute(id));
    expect(await soFar(elsewhere, other, "1")).toEqual([]);
  });

  test("is dispatched to only one connection of its group", async () => {
    const group = unique("g");
    using a = await server.poll(group, "a");
    using b = await server.poll(group, "b");
    using c = await server.poll(group, "c");
    const polls = { a, b, c };
    const jobs = await Promise.all(Array.from({ length: 12 }, () => job({ group })));
    await until("all dispatches", () => a.inbox.length + b.inbox.length + c.inbox.length >= jobs.length);
    const received = await Promise.all(Object.entries(polls).map(([id, poll]) => soFar(poll, group, id)));
    expect(received.flat().sort()).toEqual(jobs.sort());
  });

  test("addressed to one connection goes to no other", async () => {
    const group = unique("g");
    using one = await server.poll(group, "one");
    using two = await server.poll(group, "two");
    const jobs = [];
    for (let n = 0; n < 5; n++) jobs.push(await job({ address: `poll://uni@${group}/two` }));
    await until("all dispatches", () => two.inbox.length >= jobs.length);
    expect(ids(two.inbox).sort()).toEqual(jobs.sort());
    expect(await soFar(one, group, "one")).toEqual([]);
  });

  test("addressed to any connection, but preferably to one, goes to that one if it is open", async () => {
    const group = unique("g");
    using one = await server.poll(group, "one");
    using two = await server.poll(group, "two");
    const preferred = [];
    for (let n = 0; n < 5; n++) preferred.push(await job({ address: `poll://any@${group}/two` }));
    await until("all dispatches", () => two.inbox.length >= preferred.length);
    expect(await soFar(one, group, "one")).toEqual([]);
    const id = await job({ address: `poll://any@${group}/three` });
    await until("the dispatch", () => ids([...one.inbox, ...two.inbox]).includes(id));
  });

  test("that is acquired at its creation is not dispatched", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const id = unique("run");
    const created = action("promise.create", promise(id, { group }));
    await server.call("task.create", { pid: "p1", ttl: LEASE_MS, action: created });
    expect(await soFar(poll, group, "1")).toEqual([]);
  });

  test("is dispatched again when it is released, when its lease runs out and when an awaited promise settles", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const id = await job({ group });
    expect(await poll.next()).toMatchObject(execute(id, 0));

    await acquire(id, 0);
    await server.call("task.release", { id, version: 1 });
    expect(await poll.next()).toMatchObject(execute(id, 1));

    await acquire(id, 1, 100);
    expect(await poll.next()).toMatchObject(execute(id, 2));

    await acquire(id, 2);
    const child = `${id}:0`;
    await server.call("promise.create", promise(child));
    const register = action("promise.register_callback", { awaited: child, awaiter: id });
    await server.call("task.suspend", { id, version: 3, actions: [register] });
    await settle(child);
    expect(await poll.next()).toMatchObject(execute(id, 3));
  });

  test("is resumed by the deadline of an awaited promise", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const id = await job({ group });
    await poll.next();
    await acquire(id);
    const [timer, question] = [`${id}:0`, `${id}:1`];
    const timeoutAt = Date.now() + SHORT_DEADLINE_MS;
    await server.call(
      "promise.create",
      promise(timer, { timeoutAt, group: unique("g"), tags: { "resonate:timer": "true" } }),
    );
    await server.call("promise.create", promise(question, { timeoutAt: timeoutAt + 60_000 }));
    const actions = [timer, question].map((awaited) => action("promise.register_callback", { awaited, awaiter: id }));
    expect((await server.call("task.suspend", { id, version: 1, actions })).status).toBe(200);
    expect(await poll.next()).toMatchObject(execute(id, 1));
    expect(Date.now()).toBeGreaterThanOrEqual(timeoutAt);
  });

  // The question has a target, because on 0.10 the deadline of a promise without one does not fall due by itself: see
  // releases.test.ts.
  test("is resumed by the deadline of an unanswered question", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const id = await job({ group });
    await poll.next();
    await acquire(id);
    const question = `${id}:0`;
    await server.call(
      "promise.create",
      promise(question, { timeoutAt: Date.now() + SHORT_DEADLINE_MS, group: unique("g") }),
    );
    const register = action("promise.register_callback", { awaited: question, awaiter: id });
    await server.call("task.suspend", { id, version: 1, actions: [register] });
    expect(await poll.next()).toMatchObject(execute(id, 1));
    expect((await server.call("promise.get", { id: question })).data.promise.state).toBe("rejected_timedout");
  });

  test("goes to the remaining connections when one has closed", async () => {
    const group = unique("g");
    using left = await server.poll(group, "left");
    const gone = await server.poll(group, "gone");
    gone[Symbol.dispose]();
    // A server notices the end of a connection a moment later.
    await until("three in a row", async () => {
      const jobs = [await job({ group }), await job({ group }), await job({ group })];
      return (await soFar(left, group, "left")).slice(-3).join() === jobs.join();
    });
  });
});

describe("the notification of a settled promise", () => {
  test("reaches each listener once, with the value", async () => {
    const group = unique("g");
    using one = await server.poll(group, "1");
    using two = await server.poll(group, "2");
    const id = unique("news");
    await server.call("promise.create", promise(id));
    for (const listener of ["1", "2", "2"]) await listen(id, group, listener);
    const { data } = await settle(id);
    expect(await one.next()).toMatchObject({ kind: "unblock", data: { promise: data.promise } });
    expect(await two.next()).toMatchObject({ kind: "unblock", data: { promise: data.promise } });
    expect(await soFar(two, group, "2")).toEqual([]);
  });

  test("is not sent if the promise was settled before: the answer to the listener's call has the result", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const id = unique("news");
    await server.call("promise.create", promise(id));
    await settle(id);
    expect((await listen(id, group, "1")).data.promise.state).toBe("resolved");
    expect(await soFar(poll, group, "1")).toEqual([]);
  });

  test("comes once for each of several promises", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const promises = Array.from({ length: 10 }, (_, n) => unique(`${n}`));
    for (const id of promises) {
      await server.call("promise.create", promise(id));
      await listen(id, group, "1");
    }
    for (const id of promises) await settle(id);
    await until("all", () => poll.inbox.length === promises.length);
    // In any order: with Postgres, notifications may come in another order than the settlements.
    expect(ids(poll.inbox).sort()).toEqual(promises.toSorted());
  });

  test.each([
    ["a task that is fulfilled", "resolved"],
    ["a cancellation", "rejected_canceled"],
    ["a deadline", "rejected_timedout"],
    ["a timer's deadline", "resolved"],
  ])("comes from %s", async (how, state) => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const timeoutAt = Date.now() + (how.includes("deadline") ? SHORT_DEADLINE_MS : 60_000);
    const id = unique("news");
    const tags = how.includes("timer") ? { "resonate:timer": "true" } : {};
    await server.call("promise.create", promise(id, { group: unique("g"), timeoutAt, tags }));
    await listen(id, group, "1");
    if (how.includes("fulfilled")) {
      await acquire(id);
      await server.call("task.fulfill", { id, version: 1, action: action("promise.settle", { id, state, value: {} }) });
    } else if (how.includes("cancellation")) {
      await server.call("promise.settle", { id, state, value: {} });
    }
    expect(await poll.next()).toMatchObject({ kind: "unblock", data: { promise: { id, state } } });
  });

  test("to an address without a connection is dropped", async () => {
    const group = unique("g");
    const id = unique("news");
    await server.call("promise.create", promise(id));
    await listen(id, group, "1");
    using other = await server.poll(group, "2");
    await settle(id);
    expect(await soFar(other, group, "2")).toEqual([]);
    using late = await server.poll(group, "1");
    expect(await soFar(late, group, "1")).toEqual([]);
  });
});
