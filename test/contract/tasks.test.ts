import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { action, promise, type Server, startServer, unique } from "./server.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const LEASE_MS = 60_000;

const getTask = async (id: string) => (await server.call("task.get", { id })).data.task;
const getPromise = async (id: string) => (await server.call("promise.get", { id })).data.promise;
const acquire = (id: string, version = 0, ttl = LEASE_MS, pid = "p1") =>
  server.call("task.acquire", { id, version, pid, ttl });
const release = (id: string, version: number) => server.call("task.release", { id, version });
const settle = (id: string, state = "resolved", value: object = { data: "MQ==" }) =>
  server.call("promise.settle", { id, state, value });
const fulfill = (id: string, version: number, state = "resolved") =>
  server.call("task.fulfill", {
    id,
    version,
    action: action("promise.settle", { id, state, value: { data: "Mg==" } }),
  });
const suspend = (id: string, version: number, ...awaited: string[]) =>
  server.call("task.suspend", {
    id,
    version,
    actions: awaited.map((child) => action("promise.register_callback", { awaited: child, awaiter: id })),
  });
const fence = (id: string, version: number, kind: "promise.create" | "promise.settle", data: object) =>
  server.call("task.fence", { id, version, action: action(kind, data) });

/** A job whose task is free. */
async function job(options?: Parameters<typeof promise>[1]): Promise<string> {
  const id = unique("job");
  await server.call("promise.create", promise(id, { group: unique("g"), ...options }));
  return id;
}

/** A job whose task is acquired, at version 1. */
async function acquiredJob(ttl = LEASE_MS): Promise<string> {
  const id = await job();
  await acquire(id, 0, ttl);
  return id;
}

/** A pending promise in the branch of `parent`. */
async function child(parent: string, name = "0"): Promise<string> {
  const id = `${parent}:${name}`;
  await server.call("promise.create", promise(id, { tags: { "resonate:branch": parent } }));
  return id;
}

/** How many awaited promises have settled since the task last ran. */
const resumes = (task: { resumes: number }) => task.resumes;

describe("task.get", () => {
  test("of a promise with a target: pending at version 0", async () => {
    const task = await getTask(await job());
    expect(task).toMatchObject({ state: "pending", version: 0 });
    expect(task).not.toHaveProperty("pid");
  });

  test("of a promise without a target, or of one that does not exist: 404", async () => {
    const id = unique("plain");
    await server.call("promise.create", promise(id));
    expect((await server.call("task.get", { id })).status).toBe(404);
    expect((await server.call("task.get", { id: unique("none") })).status).toBe(404);
  });
});

describe("task.acquire", () => {
  test("answers with the task, its promise and the promises of its branch", async () => {
    const id = await job();
    const [open, settled] = [await child(id, "0"), await child(id, "1")];
    await settle(settled);
    const { status, data } = await acquire(id);
    expect(status).toBe(200);
    expect(data.task).toMatchObject({ id, state: "acquired", version: 1, pid: "p1", ttl: LEASE_MS });
    expect(data.promise).toEqual(await getPromise(id));
    expect(new Set(data.preload)).toEqual(new Set([await getPromise(open), await getPromise(settled)]));
    expect(await getTask(id)).toMatchObject({ state: "acquired", version: 1, pid: "p1", ttl: LEASE_MS });
  });

  test("of many at once: one wins, the others get 409", async () => {
    const id = await job();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => acquire(id, 0, LEASE_MS, `p${n}`)));
    const winners = answers.filter(({ status }) => status === 200);
    expect(winners).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19);
    expect((await getTask(id)).pid).toBe(winners[0]?.data.task.pid);
  });

  test("with a wrong version, or of an acquired or a settled task: 409; of a missing task: 404", async () => {
    const id = await job();
    expect((await acquire(id, 1)).status).toBe(409);
    expect((await acquire(id, 0)).status).toBe(200);
    expect((await acquire(id, 0)).status).toBe(409);
    expect((await acquire(id, 1)).status).toBe(409);
    await settle(id);
    expect((await acquire(id, 1)).status).toBe(409);
    expect((await acquire(unique("none"))).status).toBe(404);
  });

  test("of a task whose promise is past its deadline: 409", async () => {
    const timeoutAt = Date.now() + 100;
    const id = await job({ timeoutAt });
    await until("the deadline", () => Date.now() >= timeoutAt);
    expect((await acquire(id)).status).toBe(409);
    expect(await getTask(id)).toMatchObject({ state: "fulfilled" });
  });
});

describe("task.create", () => {
  const create = (id: string, options = {}, pid = "p1") =>
    server.call("task.create", {
      pid,
      ttl: LEASE_MS,
      action: action("promise.create", promise(id, { group: unique("g"), ...options })),
    });

  test("of a new promise creates it, and acquires its task at version 1", async () => {
    const id = unique("run");
    const { status, data } = await create(id);
    expect(status).toBe(200);
    expect(data.task).toMatchObject({ id, state: "acquired", version: 1, pid: "p1", ttl: LEASE_MS });
    expect(data.promise).toEqual(await getPromise(id));
    expect(data.preload).toEqual([]);
  });

  test("of an existing promise whose task is free acquires the task", async () => {
    const id = await job();
    const { status, data } = await create(id);
    expect([status, data.task.state, data.task.version]).toEqual([200, "acquired", 1]);
  });

  test("of a promise whose task is acquired: 409", async () => {
    expect((await create(await acquiredJob(), {}, "p2")).status).toBe(409);
  });

  test("of a promise that is settled answers with its result", async () => {
    const id = await acquiredJob();
    await fulfill(id, 1);
    const { status, data } = await create(id);
    expect([status, data.task.state]).toEqual([200, "fulfilled"]);
    expect(data.promise).toMatchObject({ state: "resolved", value: { data: "Mg==" } });
  });

  test("with a deadline that has passed settles the promise at once", async () => {
    const { data } = await create(unique("late"), { timeoutAt: 1_000 });
    expect(data).toMatchObject({ task: { state: "fulfilled", version: 0 }, promise: { state: "rejected_timedout" } });
  });

  test("needs a target, both in the request and in an existing promise", async () => {
    const id = unique("plain");
    await server.call("promise.create", promise(id));
    expect((await create(id)).status).toBe(422);
    const untargeted = action("promise.create", promise(unique("plain")));
    expect((await server.call("task.create", { pid: "p1", ttl: LEASE_MS, action: untargeted })).status).toBe(400);
  });
});

describe("task.release", () => {
  test("frees the task at its version", async () => {
    const id = await acquiredJob();
    expect((await release(id, 1)).status).toBe(200);
    const task = await getTask(id);
    expect(task).toMatchObject({ state: "pending", version: 1 });
    expect(task).not.toHaveProperty("pid");
    expect((await acquire(id, 0)).status).toBe(409);
    expect((await acquire(id, 1)).data.task.version).toBe(2);
  });

  test("with a wrong version, or of a free task: 409; of a missing task: 404", async () => {
    const id = await acquiredJob();
    expect((await release(id, 2)).status).toBe(409);
    expect((await release(id, 1)).status).toBe(200);
    expect((await release(id, 1)).status).toBe(409);
    expect((await release(unique("none"), 1)).status).toBe(404);
  });
});

describe("task.fulfill", () => {
  test.each(["resolved", "rejected", "rejected_canceled"])("settles the promise: %s", async (state) => {
    const id = await acquiredJob();
    const { status, data } = await fulfill(id, 1, state);
    expect(status).toBe(200);
    expect(data.promise).toMatchObject({ id, state, value: { data: "Mg==" }, settledAt: expect.any(Number) });
    expect(await getPromise(id)).toEqual(data.promise);
    expect(await getTask(id)).toMatchObject({ state: "fulfilled" });
  });

  test("with a wrong version, a second time, or of a free task: 409; of a missing task: 404", async () => {
    const id = await acquiredJob();
    expect((await fulfill(id, 2)).status).toBe(409);
    expect((await fulfill(id, 1)).status).toBe(200);
    expect((await fulfill(id, 1)).status).toBe(409);
    expect((await fulfill(await job(), 0)).status).toBe(409);
    expect((await fulfill(unique("none"), 1)).status).toBe(404);
  });

  test("of a task with another task's promise: 400", async () => {
    const [id, other] = [await acquiredJob(), await job()];
    const data = { id, version: 1, action: action("promise.settle", { id: other, state: "resolved", value: {} }) };
    expect((await server.call("task.fulfill", data)).status).toBe(400);
    expect(await getPromise(other)).toMatchObject({ state: "pending" });
  });

  test("after the promise was cancelled: 409, and the promise stays cancelled", async () => {
    const id = await acquiredJob();
    await settle(id, "rejected_canceled");
    expect((await fulfill(id, 1)).status).toBe(409);
    expect((await getPromise(id)).state).toBe("rejected_canceled");
  });
});

describe("task.suspend", () => {
  test("waits until one of the awaited promises settles, then the task is free at its version", async () => {
    const id = await acquiredJob();
    const [first, second] = [await child(id, "0"), await child(id, "1")];
    expect((await suspend(id, 1, first, second)).status).toBe(200);
    expect(await getTask(id)).toMatchObject({ state: "suspended", version: 1 });
    expect((await acquire(id, 1)).status).toBe(409);
    await settle(second);
    const free = await getTask(id);
    expect([free.state, free.version, resumes(free)]).toEqual(["pending", 1, 1]);
    const { data } = await acquire(id, 1);
    expect(data.task.version).toBe(2);
    expect(data.preload.map(({ id, state }: { id: string; state: string }) => [id, state]).sort()).toEqual([
      [first, "pending"],
      [second, "resolved"],
    ]);
  });

  test("counts promises that settle while the task is acquired, until the task runs again", async () => {
    const id = await acquiredJob();
    const [first, second, third] = [await child(id, "0"), await child(id, "1"), await child(id, "2")];
    await server.call("promise.register_callback", { awaited: third, awaiter: id });
    await settle(third);
    expect(resumes(await getTask(id))).toBe(1);
    expect((await suspend(id, 1, first, second)).status).toBe(200);
    expect(resumes(await getTask(id))).toBe(0);
    await settle(first);
    await acquire(id, 1);
    expect(resumes(await getTask(id))).toBe(0);
    await settle(second);
    expect(resumes(await getTask(id))).toBe(1);
    await server.call("promise.register_callback", { awaited: first, awaiter: id });
    expect(resumes(await getTask(id))).toBe(2);
    await release(id, 2);
    expect(resumes(await getTask(id))).toBe(2);
    await acquire(id, 2);
    expect(resumes(await getTask(id))).toBe(0);
  });

  test("on a settled promise does not wait: 300 with the promises of the branch", async () => {
    const id = await acquiredJob();
    const [done, open] = [await child(id, "0"), await child(id, "1")];
    await settle(done);
    const { status, data } = await suspend(id, 1, done, open);
    expect(status).toBe(300);
    expect(data.preload.map((record: { id: string }) => record.id).sort()).toEqual([done, open]);
    expect(await getTask(id)).toMatchObject({ state: "acquired", version: 1 });
  });

  test("does not miss a settlement at the same moment", async () => {
    for (let round = 0; round < 10; round++) {
      const id = await acquiredJob();
      const awaited = await child(id);
      const [{ status }] = await Promise.all([suspend(id, 1, awaited), settle(awaited)]);
      expect([status, (await getTask(id)).state]).toEqual(status === 300 ? [300, "acquired"] : [200, "pending"]);
    }
  });

  test("with a wrong version, or of a free task: 409; of a missing task: 404; on a missing promise: 422", async () => {
    const id = await acquiredJob();
    const awaited = await child(id);
    expect((await suspend(id, 2, awaited)).status).toBe(409);
    expect((await suspend(id, 1, awaited, `${id}:none`)).status).toBe(422);
    const none = unique("none");
    expect((await suspend(none, 1, await child(none))).status).toBe(404);
    expect(await getTask(id)).toMatchObject({ state: "acquired", version: 1 });
    await release(id, 1);
    expect((await suspend(id, 1, awaited)).status).toBe(409);
  });

  test("on behalf of another task, or on the task's own promise: 400", async () => {
    const [id, other] = [await acquiredJob(), await acquiredJob()];
    const foreign = [action("promise.register_callback", { awaited: await child(id), awaiter: other })];
    expect((await server.call("task.suspend", { id, version: 1, actions: foreign })).status).toBe(400);
    expect((await suspend(id, 1, id)).status).toBe(400);
  });

  test("ends for good when the task's own promise is settled", async () => {
    const id = await acquiredJob();
    const awaited = await child(id);
    await suspend(id, 1, awaited);
    await settle(id, "rejected_canceled");
    await settle(awaited);
    expect(await getTask(id)).toMatchObject({ state: "fulfilled" });
  });
});

describe("task.fence", () => {
  test("creates and settles for the holder of the task", async () => {
    const id = await acquiredJob();
    const childId = `${id}:0`;
    const created = await fence(id, 1, "promise.create", promise(childId));
    expect(created.status).toBe(200);
    expect(created.data.action).toMatchObject({
      kind: "promise.create",
      head: { status: 200, corrId: expect.any(String), version: "2026-04-01" },
      data: { promise: { id: childId, state: "pending" } },
    });
    expect(created.data.preload).toBeInstanceOf(Array);
    const settled = await fence(id, 1, "promise.settle", { id: childId, state: "rejected", value: { data: "Mw==" } });
    expect(settled.data.action).toMatchObject({ kind: "promise.settle", data: { promise: { state: "rejected" } } });
    expect(await getPromise(childId)).toMatchObject({ state: "rejected", value: { data: "Mw==" } });
  });

  test("creating a promise that exists answers with that promise", async () => {
    const id = await acquiredJob();
    const existing = await child(id);
    await settle(existing);
    const { data } = await fence(id, 1, "promise.create", promise(existing));
    expect(data.action.data.promise).toMatchObject({ id: existing, state: "resolved" });
  });

  test("settling a promise that does not exist: 404 inside a 200", async () => {
    const { status, data } = await fence(await acquiredJob(), 1, "promise.settle", {
      id: unique("none"),
      state: "resolved",
      value: {},
    });
    expect([status, data.action.head.status]).toEqual([200, 404]);
  });

  test("keeps out a worker that lost the task", async () => {
    const id = await acquiredJob();
    await release(id, 1);
    await acquire(id, 1, LEASE_MS, "p2");
    expect((await fence(id, 1, "promise.create", promise(`${id}:0`))).status).toBe(409);
    expect((await server.call("promise.get", { id: `${id}:0` })).status).toBe(404);
    expect((await fence(unique("none"), 1, "promise.create", promise(`${id}:0`))).status).toBe(404);
    expect((await fulfill(id, 1)).status).toBe(409);
    expect((await suspend(id, 1, await child(id, "1"))).status).toBe(409);
    expect((await release(id, 1)).status).toBe(409);
    expect(await getTask(id)).toMatchObject({ state: "acquired", version: 2, pid: "p2" });
  });

  test("on the task's own promise, or with another operation: 400", async () => {
    const id = await acquiredJob();
    expect((await fence(id, 1, "promise.settle", { id, state: "resolved", value: {} })).status).toBe(400);
    expect((await fence(id, 1, "promise.get" as "promise.create", { id: `${id}:0` })).status).toBe(400);
  });
});

describe("a lease", () => {
  const heartbeat = (id: string, version: number, pid = "p1") =>
    server.call("task.heartbeat", { pid, tasks: [{ id, version }] });

  test("that runs out frees the task, which another worker can acquire at the next version", async () => {
    const id = await acquiredJob(100);
    await until("the lease to run out", async () => (await getTask(id)).state === "pending");
    expect(await getTask(id)).toMatchObject({ version: 1 });
    expect((await acquire(id, 1, LEASE_MS, "p2")).data.task).toMatchObject({ version: 2, pid: "p2" });
    expect((await fulfill(id, 1)).status).toBe(409);
    expect((await fulfill(id, 2)).status).toBe(200);
  });

  test("is kept alive by heartbeats of its holder only, at its version", async () => {
    const ttl = 1_500;
    const [renewed, foreign, outdated] = [await acquiredJob(ttl), await acquiredJob(ttl), await acquiredJob(ttl)];
    await until("the leases without heartbeats to run out", async () => {
      expect((await heartbeat(renewed, 1)).status).toBe(200);
      expect((await heartbeat(foreign, 1, "p2")).status).toBe(200);
      expect((await heartbeat(outdated, 0)).status).toBe(200);
      return (await getTask(foreign)).state === "pending" && (await getTask(outdated)).state === "pending";
    });
    expect(await getTask(renewed)).toMatchObject({ state: "acquired", version: 1 });
  });

  test("of a task that does not exist: its heartbeat is accepted", async () => {
    expect((await heartbeat(unique("none"), 1)).status).toBe(200);
  });
});
