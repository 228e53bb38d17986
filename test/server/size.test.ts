// A row of a Durable Object holds up to 2 MiB: both hosts of the embedded server refuse a larger promise with a message.
import { afterAll, beforeAll, expect, test } from "vitest";
import { action, promise, type Server, startServer, unique } from "../contract/server.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer({ own: true });
});
afterAll(() => server[Symbol.asyncDispose]());

const text = (bytes: number) => ({ data: "x".repeat(bytes) });
const MIB = 1024 * 1024;

test("a param and a value of almost 1 MiB each are accepted", async () => {
  const id = unique("size");
  expect((await server.call("promise.create", { ...promise(id), param: text(MIB - 1_000) })).status).toBe(200);
  const answer = await server.call("promise.settle", { id, state: "resolved", value: text(MIB - 1_000) });
  expect(answer.status).toBe(200);
  expect((await server.call("promise.get", { id })).data.promise.value.data).toHaveLength(MIB - 1_000);
});

test("a value that is too large together with the param is refused with 413 and the size, and nothing changes", async () => {
  const [id, group] = [unique("size"), unique("g")];
  await server.call("promise.create", { ...promise(id, { group }), param: text(MIB) });
  const settle = { id, state: "resolved", value: text(MIB + 1) };
  const refusal = await server.call("promise.settle", settle);
  expect(refusal).toEqual({ status: 413, data: expect.stringContaining(`${2 * MIB} bytes`) });
  await server.call("task.acquire", { id, version: 0, pid: "p", ttl: 60_000 });
  const fulfill = { id, version: 1, action: action("promise.settle", settle) };
  expect((await server.call("task.fulfill", fulfill)).status).toBe(413);
  expect((await server.call("promise.get", { id })).data.promise.state).toBe("pending");
  expect((await server.call("task.get", { id })).data.task).toMatchObject({ state: "acquired", version: 1 });
});

test("the limit counts bytes, not characters", async () => {
  const create = { ...promise(unique("size")), param: { data: "\u{20ac}".repeat(MIB / 3) } };
  expect((await server.call("promise.create", create)).status).toBe(200);
  const value = { data: "\u{20ac}".repeat(MIB / 2 - 10_000) };
  expect((await server.call("promise.settle", { id: create.id, state: "resolved", value })).status).toBe(413);
});
