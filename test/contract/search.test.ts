import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { action, promise, type Server, startServer, unique } from "./server.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const search = async (data: object) => (await server.call("promise.search", data)).data;
const ids = (result: { promises: { id: string }[] }) => result.promises.map(({ id }) => id);

/** Creates promises with the given tags, and returns their ids, which sort like `names`. */
async function promises(tags: Record<string, string>, ...names: string[]): Promise<string[]> {
  const prefix = unique("search");
  const created = names.map((name) => `${prefix}-${name}`);
  for (const id of created) await server.call("promise.create", promise(id, { tags }));
  return created;
}

test("finds promises by all of the given tags, in the order of their ids, as promise.get returns them", async () => {
  const lot = unique("lot");
  const [b, a] = (await promises({ lot, colour: "red" }, "b", "a")) as [string, string];
  const [c] = (await promises({ lot, colour: "blue" }, "c")) as [string];
  await promises({ lot: unique("other"), colour: "red" }, "d");
  expect(ids(await search({ tags: { lot } }))).toEqual([a, b, c].sort());
  const result = await search({ tags: { lot, colour: "red" } });
  expect(result).toEqual({ promises: [await record(a), await record(b)] });
  expect(await search({ tags: { lot, colour: "green" } })).toEqual({ promises: [] });
});

test("finds promises by state", async () => {
  const lot = unique("lot");
  const [open, resolved, rejected, cancelled] = (await promises({ lot }, "1", "2", "3", "4")) as [
    string,
    string,
    string,
    string,
  ];
  await server.call("promise.settle", { id: resolved, state: "resolved", value: {} });
  await server.call("promise.settle", { id: rejected, state: "rejected", value: {} });
  await server.call("promise.settle", { id: cancelled, state: "rejected_canceled", value: {} });
  const byState = async (state: string) => ids(await search({ tags: { lot }, state }));
  expect(await byState("pending")).toEqual([open]);
  expect(await byState("resolved")).toEqual([resolved]);
  expect(await byState("rejected")).toEqual([rejected]);
  expect(await byState("rejected_canceled")).toEqual([cancelled]);
  expect(await byState("rejected_timedout")).toEqual([]);
});

test("finds a promise past its deadline as timed out", async () => {
  const lot = unique("lot");
  const id = unique("search");
  await server.call("promise.create", promise(id, { timeoutAt: Date.now() + 100, group: unique("g"), tags: { lot } }));
  await until("it to be found as timed out", async () => {
    return ids(await search({ tags: { lot }, state: "rejected_timedout" })).includes(id);
  });
  expect(ids(await search({ tags: { lot }, state: "pending" }))).toEqual([]);
});

test("pages through the results by limit and cursor", async () => {
  const lot = unique("lot");
  const created = await promises({ lot }, "1", "2", "3", "4", "5");
  const pages = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await search({ tags: { lot }, limit: 2, ...(cursor !== undefined && { cursor }) });
    pages.push(ids(page));
    cursor = page.cursor;
  }
  expect(pages).toEqual([created.slice(0, 2), created.slice(2, 4), created.slice(4)]);
  expect(await search({ tags: { lot }, limit: 5 })).not.toHaveProperty("cursor");
});

test("returns 100 at a time when no limit is given", async () => {
  const lot = unique("lot");
  const created = await promises({ lot }, ...Array.from({ length: 101 }, (_, n) => String(n).padStart(3, "0")));
  const result = await search({ tags: { lot } });
  expect(ids(result)).toEqual(created.slice(0, 100));
  expect(result.cursor).toBe(created[99]);
});

test.each([{ limit: 0 }, { limit: 1001 }, { limit: "2" }, { state: "done" }, { tags: [] }, { tags: { a: 1 } }])(
  "refuses %j",
  async (data) => {
    expect(await server.call("promise.search", data)).toMatchObject({ status: 400, data: expect.stringMatching(/./) });
  },
);

test("accepts null as an absent field", async () => {
  const lot = unique("lot");
  const created = await promises({ lot }, "1");
  expect(ids(await search({ tags: { lot }, state: null, limit: null, cursor: null }))).toEqual(created);
});

test("finds tasks by state", async () => {
  const id = unique("task");
  await server.call("task.create", {
    pid: "p1",
    ttl: 60_000,
    action: action("promise.create", promise(id, { group: unique("g") })),
  });
  const result = await server.call("task.search", { state: "acquired", limit: 1000 });
  const expected = { id, state: "acquired", version: 1, pid: "p1", ttl: 60_000 };
  expect(result.data.tasks).toContainEqual(expect.objectContaining(expected));
  const free = await server.call("task.search", { state: "pending", limit: 1000 });
  expect(free.data.tasks.map((task: { id: string }) => task.id)).not.toContain(id);
});

async function record(id: string): Promise<unknown> {
  return (await server.call("promise.get", { id })).data.promise;
}
