// The cost of a request must not depend on the number of stored jobs. The tests count rows read, not seconds.

import pino from "pino";
import { expect, test, vi } from "vitest";
import { promise } from "../../test/contract/server.ts";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { TimedResonate } from "../node/timed-resonate.ts";
import { Engine } from "./engine.ts";
import type { StoredPromise } from "./records.ts";
import { Store } from "./store.ts";

const head = { corrId: "1", version: "2026-04-01" };
const log = pino({ level: "silent" });

class CountingStore extends Store {
  reads = 0;
  override promise(id: string) {
    this.reads += 1;
    return super.promise(id);
  }
  override task(id: string) {
    this.reads += 1;
    return super.task(id);
  }
}

function openStore() {
  const { db } = openDatabase(undefined);
  return { db, store: new CountingStore(new NodeSql(db)) };
}

/** Adds `count` settled promises: jobs with one child each. */
function addSettled(store: Store, count: number): void {
  store.transaction(() => {
    for (let n = 0; n < count / 2; n++) {
      const { id, tags, timeoutAt } = promise(`old${n}`, { group: "g" });
      const settled: StoredPromise = {
        id,
        state: "resolved",
        param: {},
        value: {},
        tags,
        timeoutAt,
        createdAt: 1,
        settledAt: 2,
        callbacks: new Set(),
        listeners: new Set(),
      };
      store.putPromise(settled);
      store.putPromise({ ...settled, id: `${id}:0` });
      store.putTask({ id, state: "fulfilled", version: 1, resumes: new Set() });
    }
  });
}

/** Runs a job from start to end and returns how many rows each step read. */
function rowsRead(store: CountingStore, id: string): number[] {
  const engine = new Engine(store);
  const child = `${id}:0`;
  const register = { kind: "promise.register_callback", head, data: { awaited: child, awaiter: id } };
  const settle = (id: string) => ({ kind: "promise.settle", head, data: { id, state: "resolved", value: {} } });
  const steps = [
    { kind: "promise.create", data: promise(id, { group: "g" }) },
    { kind: "task.acquire", data: { id, version: 0, pid: "p", ttl: 60_000 } },
    {
      kind: "task.fence",
      data: {
        id,
        version: 1,
        action: { kind: "promise.create", head, data: promise(child, { tags: { "resonate:branch": id } }) },
      },
    },
    { kind: "task.suspend", data: { id, version: 1, actions: [register] } },
    settle(child),
    { kind: "task.acquire", data: { id, version: 1, pid: "p", ttl: 60_000 } },
    { kind: "task.fulfill", data: { id, version: 2, action: settle(id) } },
    { kind: "promise.get", data: { id } },
  ];
  return steps.map(({ kind, data }) => {
    store.reads = 0;
    const { response } = store.transaction(() => engine.apply(Date.now(), { kind, head, data } as never));
    expect(response.head.status).toBe(200);
    return store.reads;
  });
}

test("a job reads as many rows with 100,000 settled promises as with none, and starting the server reads none", async () => {
  const { db, store } = openStore();
  const alone = rowsRead(store, "first");
  expect(Math.max(...alone)).toBeLessThan(10);
  addSettled(store, 100_000);
  expect(rowsRead(store, "second")).toEqual(alone);

  store.reads = 0;
  const resonate = new TimedResonate(store, log);
  expect(store.reads).toBe(0);
  const { data } = await resonate.submit({ kind: "promise.get", head, data: { id: "old7:0" } });
  expect(data).toMatchObject({ promise: { id: "old7:0", state: "resolved" } });
  expect(db.prepare("SELECT count(*) AS n FROM promises WHERE state = 'resolved'").get()?.n).toBe(100_004);
  resonate.close();
});

test("no query except a search by tags scans a whole table or sorts its rows", () => {
  const { db, store } = openStore();
  const prepare = vi.spyOn(db, "prepare");
  rowsRead(store, "job");
  new Engine(store).tick(Date.now());
  store.queue.tasksOf("g", { timer: 0, id: "" }, 10);
  store.nextTimeout();
  const queries = [...new Set(prepare.mock.calls.map(([sql]) => sql))].filter((sql) =>
    /^\s*(SELECT|UPDATE|DELETE)/.test(sql),
  );
  expect(queries.length).toBeGreaterThan(5);
  for (const sql of queries) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...Array(sql.split("?").length - 1).fill(1));
    expect(
      plan
        .map(({ detail }) => String(detail))
        .filter((detail) => /^SCAN (promises|tasks|schedules)|TEMP B-TREE FOR ORDER BY/.test(detail)),
      sql,
    ).toEqual([]);
  }
});

test("10,000 timers that are due together fire in order, with requests answered in between", async () => {
  const { store } = openStore();
  const now = Date.now();
  const engine = new Engine(store);
  store.transaction(() => {
    for (let n = 0; n < 10_000; n++) {
      const tags = { "resonate:timer": "true", "resonate:target": "poll://any@default" };
      const data = promise(`timer${n}`, { timeoutAt: now + 50 + (n % 100), tags });
      engine.apply(now, { kind: "promise.create", head, data });
    }
  });
  await vi.waitUntil(() => Date.now() > now + 150);
  const resonate = new TimedResonate(store, log);
  const pending = () => store.ids("promises", "WHERE state = 'pending'").length;
  const between: number[] = [];
  await resonate.submit({ kind: "promise.search", head, data: { limit: 1 } });
  expect(pending()).toBeGreaterThan(8_000);
  while (pending() > 0) {
    const { head: answer } = await resonate.submit({ kind: "promise.get", head, data: { id: "timer0" } });
    expect(answer.status).toBe(200);
    between.push(pending());
  }
  expect(between.length).toBeGreaterThan(50);
  expect(store.ids("promises", "WHERE settledAt <> timeoutAt OR state <> 'resolved'")).toEqual([]);
  resonate.close();
});

test("a search passes on the news of a time-out that only its own read handles", () => {
  const { store } = openStore();
  const engine = new Engine(store);
  const listener = { awaited: "a", address: "poll://uni@edge/here" };
  const { response, changes } = store.transaction(() => {
    for (let n = 1; n <= 1_000; n++)
      engine.apply(0, { kind: "promise.create", head, data: promise(`b${n}`, { timeoutAt: n }) });
    engine.apply(0, { kind: "promise.create", head, data: promise("a", { timeoutAt: 2_000 }) });
    engine.apply(0, { kind: "promise.register_listener", head, data: listener });
    return engine.apply(3_000, { kind: "promise.search", head, data: { limit: 1 } });
  });
  expect(response.data).toMatchObject({ promises: [{ id: "a", state: "rejected_timedout" }] });
  expect(changes).toContainEqual(expect.objectContaining({ kind: "unblock", address: listener.address }));
});

test("listeners without a connection are dropped, listeners of open connections stay", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  const { store } = openStore();
  const resonate = new TimedResonate(store, log);
  try {
    await resonate.submit({ kind: "promise.create", head, data: promise("long") });
    const connection = resonate.connect("edge", "here");
    if (!connection) throw new Error("no connection");
    for (const id of ["here", "gone"]) {
      const data = { awaited: "long", address: `poll://uni@edge/${id}` };
      await resonate.submit({ kind: "promise.register_listener", head, data });
    }
    vi.advanceTimersByTime(120_000);
    expect(store.listenerAddresses()).toHaveLength(2);
    vi.advanceTimersByTime(120_000);
    expect(store.listenerAddresses()).toEqual(["poll://uni@edge/here"]);
    await resonate.submit({ kind: "promise.settle", head, data: { id: "long", state: "resolved", value: {} } });
    const [message = ""] = (await resonate.next(connection)) ?? [];
    expect(JSON.parse(message)).toMatchObject({ kind: "unblock" });
  } finally {
    resonate.close();
    vi.useRealTimers();
  }
});

test("an unclaimed task is dispatched again every 30 seconds", () => {
  const { store } = openStore();
  const engine = new Engine(store);
  const now = Date.now();
  engine.apply(now, { kind: "promise.create", head, data: promise("job", { group: "g", timeoutAt: now + 600_000 }) });
  const dispatchesAt = (later: number) => engine.tick(now + later).changes.filter(({ kind }) => kind === "execute");
  const dispatch = { address: "poll://any@g", task: { id: "job", version: 0 } };
  expect(dispatchesAt(29_999)).toEqual([]);
  expect(dispatchesAt(30_000)).toMatchObject([dispatch]);
  expect(dispatchesAt(59_999)).toEqual([]);
  expect(dispatchesAt(60_000)).toMatchObject([dispatch]);
});

test("with 20,000 unclaimed tasks, a start reads none, and a worker that claims tasks gets all of its group, longest waiting first", async () => {
  const { store } = openStore();
  const engine = new Engine(store);
  const now = Date.now();
  const count = 20_000;
  store.transaction(() => {
    for (let n = 0; n < count; n++)
      engine.apply(now + n, { kind: "promise.create", head, data: promise(`job${n}`, { group: n % 2 ? "g" : "h" }) });
  });
  const reads = vi.spyOn(store.queue, "tasksOf");
  const resonate = new TimedResonate(store, log);
  expect(reads).not.toHaveBeenCalled();
  const connection = resonate.connect("g", "1");
  if (!connection) throw new Error("no connection");
  const got: string[] = [];
  while (got.length < count / 2) {
    for (const message of (await resonate.next(connection)) ?? []) got.push(JSON.parse(message).data.task.id);
    for (const id of got.slice(-100))
      await resonate.submit({ kind: "task.acquire", head, data: { id, version: 0, pid: "p", ttl: 60_000 } });
  }
  expect(got).toEqual(Array.from({ length: count / 2 }, (_, n) => `job${2 * n + 1}`));
  // Each page was read once, without the tasks of the other group.
  expect(reads.mock.calls.length).toBeLessThan(count / 2 / 50);
  resonate.close();
});

test("with two workers at their limit of unclaimed tasks, further tasks go to the one that claims some", async () => {
  const { store } = openStore();
  const engine = new Engine(store);
  const [most, more] = [20_000, 300];
  store.transaction(() => {
    for (let n = 0; n < most + more; n++)
      engine.apply(Date.now(), { kind: "promise.create", head, data: promise(`job${n}`, { group: "g" }) });
  });
  const resonate = new TimedResonate(store, log);
  const got = { 1: [] as string[], 2: [] as string[] };
  const all = () => got[1].length + got[2].length;
  const reading = ([1, 2] as const).map(async (id) => {
    const connection = resonate.connect("g", String(id));
    if (!connection) throw new Error("no connection");
    for (let some = await resonate.next(connection); some; some = await resonate.next(connection))
      got[id].push(...some.map((message) => JSON.parse(message).data.task.id));
  });
  await expect.poll(all).toBe(most);
  expect(got[1]).toHaveLength(most / 2);
  for (const id of got[1].slice(0, more))
    await resonate.submit({ kind: "task.acquire", head, data: { id, version: 0, pid: "p", ttl: 60_000 } });
  await expect.poll(all).toBe(most + more);
  expect(got[1]).toHaveLength(most / 2 + more);
  expect(new Set([...got[1], ...got[2]]).size).toBe(most + more);
  resonate.close();
  await Promise.all(reading);
});

test("a worker at its limit of unclaimed tasks gets further tasks as it claims some", async () => {
  const { store } = openStore();
  const engine = new Engine(store);
  const [most, more] = [10_000, 300];
  store.transaction(() => {
    for (let n = 0; n < most + more; n++)
      engine.apply(Date.now(), { kind: "promise.create", head, data: promise(`job${n}`, { group: "g" }) });
    // As if no worker had been connected.
    for (let n = 0; n < most + more; n++) store.queue.park(`job${n}`);
  });
  const resonate = new TimedResonate(store, log);
  const connection = resonate.connect("g", "1");
  if (!connection) throw new Error("no connection");
  const got: string[] = [];
  const reading = (async () => {
    for (let some = await resonate.next(connection); some; some = await resonate.next(connection))
      got.push(...some.map((message) => JSON.parse(message).data.task.id));
  })();
  await expect.poll(() => got.length).toBe(most);
  for (const id of got.slice(0, more))
    await resonate.submit({ kind: "task.acquire", head, data: { id, version: 0, pid: "p", ttl: 60_000 } });
  await expect.poll(() => new Set(got).size).toBe(most + more);
  // The tasks that it has not claimed are no longer parked: they are dispatched again soon.
  const unclaimed = store.queue.tasksOf("g", { timer: 0, id: "" }, most + more);
  expect(unclaimed.length).toBe(most);
  expect(Math.max(...unclaimed.map(({ timer }) => timer))).toBeLessThan(Date.now() + 60_000);
  resonate.close();
  await reading;
});
