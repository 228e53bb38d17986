import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { head as newHead, promise, type Server, startServer, unique } from "./server.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const head = { ...newHead(), corrId: "abc" };
const post = async (body: unknown) => {
  const { status, text } = await server.post(typeof body === "string" ? body : JSON.stringify(body));
  return { status, ...JSON.parse(text) };
};

describe("a malformed envelope", () => {
  test.each([
    ["not JSON", "{nope"],
    ["empty", ""],
    ["not an object", "[]"],
    ["no kind", { head, data: {} }],
    ["an empty kind", { kind: "", head, data: {} }],
    ["a kind of another type", { kind: 7, head, data: {} }],
    ["no head", { kind: "promise.get", data: { id: "x" } }],
    ["no correlation id", { kind: "promise.get", head: { version: head.version }, data: { id: "x" } }],
    ["no version", { kind: "promise.get", head: { corrId: "abc" }, data: { id: "x" } }],
    ["an unknown version", { kind: "promise.get", head: { ...head, version: "1999-01-01" }, data: { id: "x" } }],
    ["no data", { kind: "promise.get", head }],
    ["data that is no object", { kind: "promise.get", head, data: [] }],
    ["an unknown kind", { kind: "promise.melt", head, data: {} }],
    ["a kind from the prototype", { kind: "constructor", head, data: {} }],
  ])("%s is refused with a reason", async (_, body) => {
    const answer = await post(body);
    expect(answer).toMatchObject({
      status: 400,
      head: { status: 400, version: "2026-04-01" },
      data: expect.any(String),
    });
    expect(answer.data).not.toBe("");
  });

  test("is answered with its kind and correlation id, if it has them", async () => {
    expect(await post({ kind: "promise.melt", head, data: {} })).toMatchObject({
      kind: "promise.melt",
      head: { corrId: "abc" },
    });
    expect(await post({ kind: "promise.get", head: { corrId: "abc" } })).toMatchObject({
      kind: "promise.get",
      head: { corrId: "abc" },
    });
    expect(await post("{")).toMatchObject({ kind: "unknown", head: { corrId: "0" } });
  });
});

describe("data that does not fit its operation", () => {
  const id = unique("bad");
  const timeoutAt = Date.now() + 60_000;
  test.each<[string, Parameters<Server["call"]>[0], object]>([
    ["no id", "promise.get", {}],
    ["an empty id", "promise.get", { id: "" }],
    ["an id of another type", "promise.get", { id: 1 }],
    ["no time-out", "promise.create", { id }],
    ["a negative time-out", "promise.create", { id, timeoutAt: -1 }],
    ["a fractional time-out", "promise.create", { id, timeoutAt: 1.5 }],
    ["an id with a null byte", "promise.create", { id: `${id}\0`, timeoutAt }],
    ["a tag that is no text", "promise.create", { id, timeoutAt, tags: { a: 1 } }],
    ["a target that is no address", "promise.create", { id, timeoutAt, tags: { "resonate:target": "workers" } }],
    ["a parameter that is no text", "promise.create", { id, timeoutAt, param: { data: { a: 1 } } }],
    ["a state that cannot be settled to", "promise.settle", { id, state: "pending" }],
    ["a listener that is no address", "promise.register_listener", { awaited: id, address: "me" }],
    ["a promise awaiting itself", "promise.register_callback", { awaited: id, awaiter: id }],
    ["no process id", "task.acquire", { id, version: 0, ttl: 1000 }],
    ["a lease of 0 ms", "task.acquire", { id, version: 0, pid: "p", ttl: 0 }],
    ["a negative version", "task.release", { id, version: -1 }],
    ["no tasks", "task.heartbeat", { pid: "p" }],
    ["no actions", "task.suspend", { id, version: 0, actions: [] }],
    [
      "an action without a head",
      "task.suspend",
      { id, version: 0, actions: [{ kind: "promise.register_callback", data: { awaited: `${id}:1`, awaiter: id } }] },
    ],
  ])("%s: 400 with a reason", async (_, kind, data) => {
    const { status, data: reason } = await server.call(kind, data);
    expect({ status, reason }).toEqual({ status: 400, reason: expect.stringMatching(/./) });
  });

  test("leaves nothing behind", async () => {
    expect((await server.call("promise.get", { id })).status).toBe(404);
  });
});

test("half a surrogate pair in an id is refused", async () => {
  const body = `{"kind":"promise.create","head":{"corrId":"abc","version":"2026-04-01"},"data":{"id":"\\ud83d","timeoutAt":9999999999999}}`;
  expect((await server.post(body)).status).toBe(400);
});

test("bytes that are not UTF-8 are refused", async () => {
  expect((await server.post(new Uint8Array([0x22, 0xff, 0xfe, 0x22]))).status).toBe(400);
});

test.each(["debug.start", "debug.reset", "debug.snap", "debug.tick", "debug.stop"] as const)(
  "%s is refused",
  async (kind) => {
    expect((await server.call(kind, {})).status).toBe(403);
  },
);

test("a request of more than 2 MiB is refused, and a slightly smaller one is accepted", async () => {
  const sized = (bytes: number) => ({ ...promise(unique("big")), param: { data: "x".repeat(bytes) } });
  expect((await server.call("promise.create", sized(2 * 1024 * 1024 - 2_000))).status).toBe(200);
  expect(
    (await server.post(JSON.stringify({ kind: "promise.create", head, data: sized(2 * 1024 * 1024) }))).status,
  ).toBe(413);
});

test.each(["/health", "/ready"])("%s answers", async (path) => {
  expect((await fetch(server.url + path)).status).toBe(200);
});
