import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { promise, type Server, startServer, unique } from "./server.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const create = (id: string, options?: Parameters<typeof promise>[1]) =>
  server.call("promise.create", promise(id, options));
const get = async (id: string) => (await server.call("promise.get", { id })).data.promise;
const settle = (id: string, state = "resolved", value: object = { data: "MQ==" }) =>
  server.call("promise.settle", { id, state, value });
const waitUntil = (time: number) => until("the deadline", () => Date.now() >= time);

describe("promise.create", () => {
  test("creates a pending promise, which promise.get returns unchanged", async () => {
    const id = unique("create");
    const before = Date.now();
    const data = promise(id, { tags: { colour: "blau" } });
    const { status, data: answer } = await server.call("promise.create", data);
    expect(status).toBe(200);
    expect(answer.promise).toEqual({ ...data, state: "pending", value: {}, createdAt: expect.any(Number) });
    expect(answer.promise.createdAt).toBeGreaterThanOrEqual(before);
    expect(answer.promise.createdAt).toBeLessThanOrEqual(Date.now());
    expect(await get(id)).toEqual(answer.promise);
  });

  test("a second time changes nothing", async () => {
    const id = unique("again");
    const first = await create(id);
    const second = await server.call("promise.create", {
      ...promise(id, { timeoutAt: 9_000_000_000_000 }),
      param: { data: "eA==" },
    });
    expect(second.status).toBe(200);
    expect(second.data).toEqual(first.data);
  });

  test("many times at once creates one", async () => {
    const id = unique("race");
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => server.call("promise.create", { ...promise(id), param: { data: `${n}` } })),
    );
    const stored = await get(id);
    for (const { status, data } of answers) expect([status, data.promise]).toEqual([200, stored]);
  });

  test("needs only an id and a deadline", async () => {
    const id = unique("bare");
    const { data } = await server.call("promise.create", { id, timeoutAt: 9_000_000_000_000 });
    expect(data.promise).toMatchObject({ id, state: "pending", param: {}, value: {}, tags: {} });
  });

  test("accepts null as an absent value", async () => {
    const id = unique("null");
    const { data } = await server.call("promise.create", { ...promise(id), param: { headers: null, data: null } });
    expect(data.promise.param).toEqual({});
  });

  test("with a deadline that has passed creates a promise that timed out at its deadline", async () => {
    const id = unique("late");
    const { status, data } = await create(id, { timeoutAt: 1_000, group: unique("g") });
    expect(status).toBe(200);
    expect(data.promise).toMatchObject({
      state: "rejected_timedout",
      createdAt: 1_000,
      settledAt: 1_000,
      timeoutAt: 1_000,
    });
    expect((await server.call("task.get", { id })).data.task).toMatchObject({ state: "fulfilled", version: 0 });
  });

  test("of a timer whose deadline has passed makes it resolved", async () => {
    const { data } = await create(unique("late"), { timeoutAt: 1_000, tags: { "resonate:timer": "true" } });
    expect(data.promise).toMatchObject({ state: "resolved", settledAt: 1_000 });
  });

  test.each(["a b", "é–😀", "x:0.1~2@2026-01-01", `"'\\;--`, "%41", "../..", "__proto__"])(
    "accepts %s as an id",
    async (name) => {
      const id = unique("") + name;
      expect((await create(id)).data.promise.id).toBe(id);
      expect((await get(id)).id).toBe(id);
      expect((await server.call("promise.get", { id: `${id}x` })).status).toBe(404);
    },
  );
});

describe("promise.get", () => {
  test("of a promise that does not exist: 404 with a reason", async () => {
    const { status, data } = await server.call("promise.get", { id: unique("none") });
    expect({ status, data }).toEqual({ status: 404, data: expect.stringMatching(/./) });
  });
});

describe("promise.settle", () => {
  test.each(["resolved", "rejected", "rejected_canceled"])("to %s", async (state) => {
    const id = unique("settle");
    const { data: created } = await create(id);
    const value = { headers: { note: "Grüße" }, data: "x".repeat(100_000) };
    const { status, data } = await settle(id, state, value);
    expect(status).toBe(200);
    expect(data.promise).toEqual({ ...created.promise, state, value, settledAt: expect.any(Number) });
    expect(data.promise.settledAt).toBeGreaterThanOrEqual(data.promise.createdAt);
    expect(await get(id)).toEqual(data.promise);
  });

  test("a second time changes nothing", async () => {
    const id = unique("settle");
    await create(id);
    const first = await settle(id);
    const second = await settle(id, "rejected", { data: "Mg==" });
    expect([second.status, second.data]).toEqual([200, first.data]);
  });

  test("many times at once: one wins, and all answers have its value", async () => {
    const id = unique("settle");
    await create(id);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => settle(id, "resolved", { data: `${n}` })));
    expect(new Set(answers.map(({ data }) => data.promise.value.data)).size).toBe(1);
  });

  test("of a promise that does not exist: 404", async () => {
    expect((await settle(unique("none"))).status).toBe(404);
  });

  test("fulfills the task, so that no worker can acquire it", async () => {
    const id = unique("settle");
    await create(id, { group: unique("g") });
    await settle(id, "rejected_canceled");
    expect((await server.call("task.get", { id })).data.task.state).toBe("fulfilled");
    expect((await server.call("task.acquire", { id, version: 0, pid: "p", ttl: 1000 })).status).toBe(409);
  });
});

describe("a deadline", () => {
  test.each([
    ["times a promise out", {}, "rejected_timedout"],
    ["resolves a timer", { "resonate:timer": "true" }, "resolved"],
  ])("%s, at that moment", async (_, tags, state) => {
    const id = unique("deadline");
    const timeoutAt = Date.now() + 150;
    await create(id, { timeoutAt, tags });
    await waitUntil(timeoutAt);
    expect(await get(id)).toMatchObject({ state, settledAt: timeoutAt, value: {} });
  });

  test("that has passed makes a later settlement ineffective", async () => {
    const id = unique("deadline");
    const timeoutAt = Date.now() + 100;
    await create(id, { timeoutAt });
    await waitUntil(timeoutAt);
    const { status, data } = await settle(id);
    expect(status).toBe(200);
    expect(data.promise).toMatchObject({ state: "rejected_timedout", settledAt: timeoutAt });
  });

  test("that has passed is not moved by creating the promise again", async () => {
    const id = unique("deadline");
    const timeoutAt = Date.now() + 100;
    await create(id, { timeoutAt });
    await waitUntil(timeoutAt);
    expect((await create(id)).data.promise).toMatchObject({ state: "rejected_timedout", timeoutAt });
  });
});

describe("promise.register_listener", () => {
  const address = `poll://uni@${unique("unconnected")}/1`;
  const listen = (awaited: string) => server.call("promise.register_listener", { awaited, address });

  test("answers with the promise: pending, or settled with its value", async () => {
    const id = unique("listen");
    await create(id);
    expect(await listen(id)).toMatchObject({ status: 200, data: { promise: { id, state: "pending" } } });
    await settle(id);
    expect(await listen(id)).toMatchObject({
      status: 200,
      data: { promise: { id, state: "resolved", value: { data: "MQ==" } } },
    });
  });

  test("on a promise without tags: 200", async () => {
    const id = unique("bare");
    await server.call("promise.create", { id, timeoutAt: Date.now() + 60_000 });
    expect((await listen(id)).status).toBe(200);
  });

  test("on a promise that does not exist: 404", async () => {
    expect((await listen(unique("none"))).status).toBe(404);
  });
});

describe("promise.register_callback", () => {
  const register = (awaited: string, awaiter: string) => server.call("promise.register_callback", { awaited, awaiter });
  /** Ids of one job, since release 0.10 lets no job await another job's promise. */
  const idsOf = (job: string) => ({ awaiter: job, awaited: `${job}:0`, open: `${job}:1` });

  test("answers with the awaited promise", async () => {
    const { awaited, awaiter } = idsOf(unique("job"));
    await create(awaited);
    await create(awaiter, { group: unique("g") });
    expect(await register(awaited, awaiter)).toMatchObject({
      status: 200,
      data: { promise: { id: awaited, state: "pending" } },
    });
  });

  test("on a settled promise frees a suspended awaiter", async () => {
    const { awaited, awaiter, open } = idsOf(unique("job"));
    await create(awaited);
    await settle(awaited);
    await create(open);
    await create(awaiter, { group: unique("g") });
    await server.call("task.acquire", { id: awaiter, version: 0, pid: "p", ttl: 60_000 });
    const actions = [{ kind: "promise.register_callback", head: {}, data: { awaited: open, awaiter } }];
    await server.call("task.suspend", { id: awaiter, version: 1, actions });
    const task = async () => (await server.call("task.get", { id: awaiter })).data.task;
    expect(await task()).toMatchObject({ state: "suspended", resumes: 0 });
    expect((await register(awaited, awaiter)).data.promise.state).toBe("resolved");
    expect(await task()).toMatchObject({ state: "pending", version: 1, resumes: 1 });
  });

  test("needs both promises, and an awaiter with a target", async () => {
    const { awaited, awaiter } = idsOf(unique("job"));
    await create(awaited);
    expect((await register(awaited, awaiter)).status).toBe(422);
    await create(awaiter);
    expect((await register(awaited, awaiter)).status).toBe(422);
    expect((await register(`${awaiter}:none`, awaiter)).status).toBe(404);
  });
});
