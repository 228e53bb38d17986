// Only the Node host needs this check, because every page in a browser on this machine can reach its port.
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, until } from "../../testing/stack/program.ts";
import { connectTo, head, promise, type Server } from "../contract/server.ts";

let server: Server;
beforeAll(async () => {
  const program = run("server/node/process.ts", { args: ["--port", "0", "--memory"] });
  const ready = await until("the server to be ready", () => program.logs().find(({ msg }) => msg === "ready"));
  server = connectTo(String(ready.url), async () => program[Symbol.asyncDispose]());
});
afterAll(() => server[Symbol.asyncDispose]());

test("a page in a browser can neither post nor listen", async () => {
  const create = JSON.stringify({ kind: "promise.create", head: head(), data: promise("page") });
  const origin = { origin: "https://example.com" };
  expect((await fetch(server.url, { method: "POST", body: create, headers: origin })).status).toBe(403);
  const poll = `${server.url}/poll/workers/1`;
  expect((await fetch(poll, { headers: { "sec-fetch-site": "cross-site" } })).status).toBe(403);
  expect((await server.call("promise.get", { id: "page" })).status).toBe(404);
});
