// The embedded server's additions to the protocol, on either host. The standalone server, at RESONATE_URL, ignores or refuses them.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_BATCH_LINES, NDJSON } from "../../core/resonate/connection/protocol.ts";
import { timerTags } from "../../core/resonate/connection/server-rules.ts";
import { cleanUpId, journalEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import { action, head, promise, type Release, releaseOf, type Server, startServer, unique } from "./server.ts";

let server: Server;
let release: Release;
let isEmbedded: boolean;
beforeAll(async () => {
  server = await startServer();
  release = await releaseOf(server);
  isEmbedded = release === "embedded";
});
afterAll(() => server[Symbol.asyncDispose]());

describe("task.acquire with records", () => {
  const acquire = async (id: string, version: number, records?: number) =>
    (await server.call("task.acquire", { id, version, pid: "p", ttl: 60_000, records })).data;
  const record = (id: string, version: number, n: number, timeoutAt: number) =>
    server.call("task.fence", {
      id,
      version,
      action: action("promise.create", promise(journalEntryId(id, n), { timeoutAt, tags: timer(timeoutAt) })),
    });

  const timer = (due: number) => ({ "resonate:timer": "true", ...(release === "0.10" && timerTags(due)) });

  /** Creates a job with `records` records. The last is a sleep that is over, so the task is free again. Returns the id. */
  async function wokenJob(records: number): Promise<string> {
    const id = unique("job");
    await server.call("promise.create", promise(id, { group: unique("g") }));
    await acquire(id, 0);
    for (let n = 1; n < records; n++) await record(id, 1, n, 1);
    await record(id, 1, records, Date.now() + 200);
    const actions = [action("promise.register_callback", { awaited: journalEntryId(id, records), awaiter: id })];
    await server.call("task.suspend", { id, version: 1, actions });
    await until("the sleep to end", async () => (await server.call("task.get", { id })).data.task.state === "pending");
    return id;
  }

  test("answers with the job's records from number `records` on, and with those that woke it", async () => {
    const id = await wokenJob(3);
    const { records, preload, task, promise } = await acquire(id, 1, 2);
    expect([task.version, promise.id]).toEqual([2, id]);
    expect(records).toBe(isEmbedded ? 2 : undefined);
    const states = preload.map((each: { id: string; state: string }) => [each.id, each.state]).sort();
    const [second, third] = [2, 3].map((n) => [journalEntryId(id, n), "resolved"]);
    expect(states).toEqual(isEmbedded ? [second, third] : []);
  });

  test("answers 0 with the records that woke the job only, and a request without `records` as the protocol says", async () => {
    const [withRecords, plain] = [await wokenJob(2), await wokenJob(2)];
    const { preload } = await acquire(withRecords, 1, 0);
    expect(preload.map(({ id }: { id: string }) => id)).toEqual(isEmbedded ? [journalEntryId(withRecords, 2)] : []);
    expect(await acquire(plain, 1)).toMatchObject({ preload: [] });
  });

  test("answers without records when a job has very many", async () => {
    const id = await wokenJob(102);
    const { records, preload, task } = await acquire(id, 1, 1);
    expect([records, preload, task.version]).toEqual([undefined, [], 2]);
  });
});

test("promise.forget removes all generations of a name, and none while one of their clean-ups is pending", async () => {
  const first = unique("trip");
  const [second, cleanUp] = [`${first}~2`, cleanUpId(`${first}~2`)];
  for (const id of [first, second, cleanUp]) await server.call("promise.create", promise(id));
  const settle = (id: string) => server.call("promise.settle", { id, state: "resolved", value: {} });
  const statuses = async () =>
    Promise.all([first, second, cleanUp].map(async (id) => (await server.call("promise.get", { id })).status));
  // The types of the SDK lack this addition.
  const forget = async () => (await server.call("promise.forget" as "promise.get", { id: first })).status;
  await settle(first);
  await settle(second);
  expect(await forget()).toBe(isEmbedded ? 422 : 400);
  expect(await statuses()).toEqual([200, 200, 200]);
  await settle(cleanUp);
  expect(await forget()).toBe(isEmbedded ? 200 : 400);
  expect(await statuses()).toEqual(isEmbedded ? [404, 404, 404] : [200, 200, 200]);
});

describe("promise.read", () => {
  // The types of the SDK lack this addition.
  const read = (data: object) => server.call("promise.read" as "promise.get", data as never);
  const settle = (id: string, length: number) =>
    server.call("promise.settle", { id, state: "resolved", value: { headers: { h: "1" }, data: "A".repeat(length) } });

  test("answers with several promises, and without values that are longer than wanted", async () => {
    const [short, long, pending, none] = ["short", "long", "pending", "none"].map(unique) as [
      string,
      string,
      string,
      string,
    ];
    for (const id of [short, long, pending]) await server.call("promise.create", promise(id));
    await settle(short, 100);
    await settle(long, 200_000);
    const { status, data } = await read({ ids: [long, none, short, pending], maxValue: 1_000 });
    if (!isEmbedded) return expect(status).toBe(400);
    expect(data.records).toMatchObject([
      { id: long, state: "resolved", value: { headers: { h: "1" } }, omitted: 200_000 },
      null,
      { id: short, value: { headers: { h: "1" }, data: "A".repeat(100) } },
      { id: pending, state: "pending" },
    ]);
    expect(data.records[0].value.data).toBeUndefined();
    expect(data.records[2].omitted).toBeUndefined();
    const whole = await server.call("promise.get", { id: long });
    expect((await read({ ids: [long] })).data.records).toEqual([whole.data.promise]);
  });

  test("answers with the promises at the beginning if all are too large for one answer", async () => {
    const ids = Array.from({ length: 6 }, () => unique("large"));
    for (const id of ids) {
      await server.call("promise.create", promise(id));
      await settle(id, 1_000_000);
    }
    const { status, data } = await read({ ids });
    if (!isEmbedded) return expect(status).toBe(400);
    expect(data.records.length).toBeLessThan(6);
    expect(data.records.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, data.records.length));
  });

  test("has the ends of pending promises pushed, also to a connection that replaces the one at the address", async () => {
    if (!isEmbedded) return;
    const group = unique("edge");
    const ids = [unique("one"), unique("two"), unique("due")] as const;
    const [one, two, due] = ids;
    for (const id of [one, two]) await server.call("promise.create", promise(id));
    const target = { group: unique("g"), timeoutAt: Date.now() + 1_500 };
    await server.call("promise.create", promise(due, target));
    const pushed: string[] = [];
    const connect = async () => {
      const end = new AbortController();
      const connection = await fetch(`${server.url}/poll/${group}/reader`, { signal: end.signal });
      const follow = async () => {
        for await (const chunk of connection.body ?? []) pushed.push(new TextDecoder().decode(chunk as Uint8Array));
      };
      follow().catch(() => {});
      return end;
    };
    await connect();
    const { data } = await read({ ids, address: `poll://uni@${group}/reader` });
    expect(data.records.map(({ state }: { state: string }) => state)).toEqual(["pending", "pending", "pending"]);
    await settle(one, 10);
    await until("the first end", () => pushed.join("").includes(one));
    const second = await connect();
    await settle(two, 10);
    await until("the other ends", () => pushed.join("").includes(two) && pushed.join("").includes(due));
    second.abort();
  });
});

describe("requests on lines", () => {
  const post = (bodies: string[]) =>
    fetch(server.url, { method: "POST", headers: { "content-type": NDJSON }, body: bodies.join("\n") });
  const create = (id: string, corrId: string) =>
    JSON.stringify({ kind: "promise.create", head: { ...head(), corrId }, data: promise(id) });
  const exists = async (id: string) => (await server.call("promise.get", { id })).status === 200;

  test("are answered in order, each on its own line", async () => {
    const [one, two] = [unique("one"), unique("two")];
    const response = await post([create(one, "1"), "{", create(two, "2")]);
    if (!isEmbedded) {
      expect(response.status).toBe(400);
      expect([await exists(one), await exists(two)]).toEqual([false, false]);
      return;
    }
    expect([response.status, response.headers.get("content-type")]).toEqual([200, NDJSON]);
    const answers = (await response.text()).split("\n").map((line) => JSON.parse(line));
    expect(answers).toMatchObject([
      { head: { corrId: "1", status: 200 }, data: { promise: { id: one } } },
      { head: { status: 400 } },
      { head: { corrId: "2", status: 200 }, data: { promise: { id: two } } },
    ]);
    expect([await exists(one), await exists(two)]).toEqual([true, true]);
  });

  test("are refused when they are too many, and none is executed", async () => {
    const ids = Array.from({ length: MAX_BATCH_LINES + 1 }, (_, n) => unique(`n${n}`));
    const response = await post(ids.map((id) => create(id, "1")));
    expect(response.status).toBe(isEmbedded ? 413 : 400);
    expect(await exists(ids[0] as string)).toBe(false);
  });
});
