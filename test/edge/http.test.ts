import { once } from "node:events";
import { createConnection } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { JSON_HEADERS, send } from "../limits/support.ts";
import { CLIENTS } from "../support/clients.ts";
import type { Gate } from "../support/gate.ts";
import { type GatedStack, startGatedStack } from "../support/stack.ts";

let gate: Gate;
let stack: GatedStack;
beforeAll(async () => {
  stack = await startGatedStack({ workers: 0 });
  gate = stack.gate;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** The headers and parameters that requests of an era have in addition to the call itself. */
const ERAS = {
  "2026-07-28": {
    headers: (method: string, name?: string) => ({
      ...JSON_HEADERS,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name && { "mcp-name": name }),
    }),
    params: {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  },
  "2025": { headers: () => JSON_HEADERS, params: {} },
};
const eras = Object.entries(ERAS);

const post = (body: string | object, headers: Record<string, string> = JSON_HEADERS) =>
  fetch(stack.url, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });

/** The JSON-RPC message of an answer, whose body is JSON or a stream of one event. */
async function messageOf(response: Response) {
  const text = await response.text();
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
}

describe("routes", () => {
  test("/health reports the edge, and /ready the Resonate server behind it", async () => {
    const health = await fetch(`${stack.origin}/health`);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    const ready = await fetch(`${stack.origin}/ready`);
    expect([ready.status, await ready.json()]).toEqual([200, { status: "ready" }]);
  });

  test.each([
    ["GET", "/jobs/"],
    ["GET", "/assets/none.js"],
    ["GET", "/assets/..%2Fpackage.json"],
    ["POST", "/"],
    ["POST", "/mcp/x"],
    ["POST", "/health"],
    ["GET", "/pages/none"],
    ["GET", "/.well-known/mcp"],
  ])("%s %s is not found, and the answer names the endpoint", async (method, path) => {
    const response = await fetch(stack.origin + path, { method });
    expect([response.status, await response.json()]).toEqual([404, { error: expect.stringContaining("/mcp") }]);
  });

  test.each(["GET", "DELETE", "PUT"])("%s /mcp is not allowed: a session is an id alone", async (method) => {
    for (const headers of [{ accept: "text/event-stream" }, { "mcp-protocol-version": "2026-07-28" }]) {
      const response = await fetch(stack.url, { method, headers });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    }
  });
});

describe.each(eras)("a wrong request of revision %s:", (_era, { headers, params }) => {
  const call = (name: string, args: unknown) => ({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: args, ...params },
  });

  test.each(["{nope", "", '{"jsonrpc": "2.0", "id": 1'])("malformed JSON (%j)", async (body) => {
    const response = await post(body, headers("tools/list"));
    expect(response.status).toBe(400);
    expect(await messageOf(response)).toMatchObject({ error: { code: -32700 } });
  });

  test("a content type other than JSON", async () => {
    const body = call("set_timer", { timer_name: "tea", seconds: 5 });
    const response = await post(body, { ...headers("tools/call", "set_timer"), "content-type": "text/plain" });
    expect(response.status).toBe(415);
    expect(await response.text()).toContain("application/json");
  });

  test("a body of more than 1 MB, with or without a content length", async () => {
    const body = JSON.stringify(call("probe_status", { job_names: ["x".repeat(1_000_000)] }));
    expect((await post(body, headers("tools/call", "probe_status"))).status).toBe(413);
    const chunked = { method: "POST", headers: headers("tools/call", "probe_status"), duplex: "half" };
    const response = await fetch(stack.url, { ...chunked, body: new Blob([body]).stream() } as RequestInit);
    expect(response.status).toBe(413);
  });

  test.each([
    ["is too large", 413, 1_000_000, {}],
    ["comes from a foreign origin", 403, 225_000, { origin: "https://elsewhere.example" }],
  ])("a body that %s is read to its end before the refusal", async (_why, status, part, more) => {
    const socket = createConnection(Number(new URL(stack.url).port), "127.0.0.1");
    const length = { host: "127.0.0.1", "content-length": String(4 * part) };
    const head = Object.entries({ ...headers("tools/list"), ...length, ...more });
    const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const send = (data: string) =>
      new Promise<void>((resolve, reject) => {
        socket.once("error", reject);
        socket.write(data, (error) => (error ? reject(error) : resolve()));
      });
    await send(`POST /mcp HTTP/1.1\r\n${lines}\r\n`);
    for (let sent = 0; sent < 4; sent += 1) {
      // Sends slowly, as over a network.
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(socket.bytesRead, "answered before everything was sent").toBe(0);
      await send("x".repeat(part));
    }
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    socket.destroy();
  });

  test("a body of just under 1 MB is read", async () => {
    const body = call("probe_status", { job_names: ["x".repeat(990_000)] });
    const { result } = await messageOf(await post(body, headers("tools/call", "probe_status")));
    expect(result.content[0].text).toMatch(/^Nothing was done: .*job_names/s);
  });

  test("an unknown method", async () => {
    const response = await post({ jsonrpc: "2.0", id: 1, method: "nope", params }, headers("nope"));
    expect(await messageOf(response)).toMatchObject({ id: 1, error: { code: -32601 } });
  });

  test.each(["set_timers", "__proto__"])("an unknown tool (%j), and the answer names the tools", async (name) => {
    const response = await post(call(name, {}), headers("tools/call", name));
    const { error } = await messageOf(response);
    expect(error.code).toBe(-32602);
    expect(error.message).toMatch(
      `Nothing was done: there is no tool ${name}. The tools are start_gathering, set_timer`,
    );
  });

  test.each([["tea"], [["tea"]], [5]])("arguments that are no object (%j)", async (args) => {
    const response = await post(call("set_timer", args), headers("tools/call", "set_timer"));
    expect(await messageOf(response)).toMatchObject({
      error: { code: -32602, message: expect.stringContaining("arguments") },
    });
  });

  test.each(["await_result", "probe_status"])("an invalid progress token, for %s", async (name) => {
    const request = call(name, {});
    const _meta = { ...("_meta" in params && params._meta), progressToken: { a: 1 } };
    const response = await post({ ...request, params: { ...request.params, _meta } }, headers("tools/call", name));
    expect([response.status, await messageOf(response)]).toMatchObject([400, { error: { code: -32600 } }]);
  });

  test.each([
    ["several requests", [1, 2]],
    ["one request", [1]],
    ["nothing", []],
  ])("a list of %s in place of a request", async (_what, ids) => {
    const body = ids.map((id) => ({ jsonrpc: "2.0", id, method: "tools/list", params }));
    const response = await post(body, headers("tools/list"));
    const error = { code: -32600, message: "Invalid Request: the body is a list. Requests are sent one at a time" };
    expect([response.status, await response.json()]).toEqual([400, { jsonrpc: "2.0", error, id: null }]);
  });

  test("none of these requests reaches the Resonate server", async () => {
    expect(gate.calls).toEqual([]);
  });
});

test("headers of the 2026-07-28 revision that contradict the body are refused", async () => {
  const { headers, params } = ERAS["2026-07-28"];
  const args = { timer_name: "tea", seconds: 5 };
  const body = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "set_timer", arguments: args, ...params },
  };
  const response = await post(body, headers("tools/call", "get_timer_status"));
  expect([response.status, (await response.json()).error.message]).toEqual([400, expect.stringContaining("set_timer")]);
  expect(gate.calls).toEqual([]);
});

test.each(CLIENTS)("$kind gets a protocol error for an unknown tool", async ({ connect }) => {
  await using client = await connect(stack.url);
  await expect(client.callTool("set_timers", {})).rejects.toThrow("there is no tool set_timers");
});

describe("a web page whose host name resolves to this machine", () => {
  const lists = async (headers: Record<string, string>) =>
    (await send(stack.url, { headers, body: { jsonrpc: "2.0", id: 1, method: "tools/list" } })).status;

  test.each([
    { host: "evil.example" },
    { host: "127.0.0.1.evil.example" },
    { host: "evil.example:80" },
    { origin: "http://evil.example" },
    { origin: "http://localhost.evil.example" },
    { origin: "null" },
  ])("is refused by its headers: %j", async (headers) => {
    expect(await lists(headers)).toBe(403);
    expect((await send(`${stack.origin}/ready`, { method: "GET", headers })).status).toBe(403);
  });

  test.each([{ host: "localhost:1" }, { host: "127.0.0.1" }, { origin: "http://localhost:3000" }])(
    "is refused, while a request with %j is accepted",
    async (headers) => {
      expect(await lists(headers)).toBe(200);
    },
  );
});
