import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { ANYONE } from "../core/author/caller.ts";
import type { Job } from "../core/author/job.ts";
import { defineTool } from "../core/tools/tool.ts";
import { timer } from "../tools/timer/timer.ts";
import { createApp } from "./app.ts";
import { leaveOutEmpty } from "./mcp/empty-members.ts";

const info = { name: "closed", title: "Closed", version: "1.0.0" };
const app = createApp({ jobs: [], tools: [], identity: { info, description: "Tests.", instructions: "" } });
const BINDINGS = { RESONATE_URL: "http://127.0.0.1:1", LOG_LEVEL: "silent", RATE_LIMIT: "0" };
const OAUTH = {
  ...BINDINGS,
  AUTH_MODE: "oauth",
  OAUTH_ISSUER: "https://issuer.example",
  OAUTH_AUDIENCE: "https://edge.example/mcp",
};
const JSON_TYPE = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** A request as Cloudflare forwards it. */
function through(address: string, path: string, headers: Record<string, string>, body = "{}"): Request {
  const request = new Request(`https://edge.example${path}`, {
    method: "POST",
    headers: { host: "edge.example", "cf-connecting-ip": address, ...JSON_TYPE, ...headers },
    body,
  });
  return Object.assign(request, { cf: { colo: "FRA" } });
}

describe("a client that guesses tokens", () => {
  test("has a hundred tries a minute from an address or IPv6 network, which do not count for others", async () => {
    const guess = async (n: number, network = "2001:db8:1:2") =>
      (await app.fetch(through(`${network}::${n.toString(16)}`, "/mcp", { authorization: `Bearer ${n}` }), OAUTH))
        .status;
    for (let n = 1; n <= 100; n++) expect(await guess(n)).toBe(401);
    expect(await guess(101)).toBe(429);
    expect(await guess(102, "2001:db8:1:3")).toBe(401);
  });

  test("has as many at the account's Resonate server, which receives none of them", async () => {
    let asked = 0;
    const object = {
      fetch: async () => {
        asked += 1;
        return new Response(null, { status: 401 });
      },
    };
    const RESONATE = { idFromName: () => ({}), get: () => object };
    const env = { LOG_LEVEL: "silent", AUTH_MODE: "none", RATE_LIMIT: "0", RESONATE, RESONATE_PUBLIC: "1" };
    const guess = async (address: string) => (await app.fetch(through(address, "/resonate", {}), env)).status;
    const answers = new Set<number>();
    for (let n = 0; n < 100; n++) answers.add(await guess("192.0.2.1"));
    expect([...answers, asked]).toEqual([401, 0]);
    expect([await guess("192.0.2.1"), asked]).toEqual([429, 0]);
    expect([await guess("192.0.2.2"), asked]).toEqual([401, 0]);
  });
});

test("an operator may refuse everybody in a deployment without authentication, who are one caller", async () => {
  const env = { ...BINDINGS, AUTH_MODE: "none" };
  const call = { jsonrpc: "2.0", id: 1, method: "ping" };
  const ping = async (of: object) =>
    (await app.fetch(through("192.0.2.1", "/mcp", {}, JSON.stringify(call)), of)).status;
  expect(await ping(env)).toBe(200);
  expect(await ping({ ...env, BLOCKED_CALLERS: ANYONE.label })).toBe(403);
});

test.each([
  ["is down", 503, "is unavailable: it could not be reached"],
  ["has a job that cannot be decrypted", 424, "encrypted with a key that this deployment does not have"],
])("a page learns why it gets nothing while the Resonate server %s", async (why, status, words) => {
  const promise = { id: "timer_a", state: "pending", param: { data: "sealed:none:AAAA" }, value: {}, tags: {} };
  const found = { kind: "promise.get", head: { status: 200 }, data: { promise } };
  vi.stubGlobal("fetch", async () => (why === "is down" ? Promise.reject(new Error("refused")) : Response.json(found)));
  const one = createApp({
    jobs: [timer as Job],
    tools: [],
    identity: { info, description: "Tests.", instructions: "" },
  });
  const asked = new Request("https://edge.example/pages/job?name=timer_a", { headers: { host: "edge.example" } });
  const response = await one.fetch(asked, { ...BINDINGS, AUTH_MODE: "none" });
  expect([response.status, await response.json()]).toEqual([status, { error: expect.stringContaining(words) }]);
  vi.unstubAllGlobals();
});

const OPEN = { ...BINDINGS, AUTH_MODE: "none" };

test.each<[why: string, status: number, env: object, path: string, headers: Record<string, string>]>([
  ["token", 401, OAUTH, "/mcp", { authorization: "Bearer wrong" }],
  ["origin", 403, OPEN, "/mcp", { origin: "https://elsewhere.example" }],
  ["host", 403, { ...OPEN, ALLOWED_HOSTS: "other.example" }, "/mcp", {}],
  ["path", 404, OPEN, "/nowhere", {}],
  ["type", 415, OPEN, "/mcp", { "content-type": "text/plain" }],
  ["limit", 429, { ...OPEN, RATE_LIMIT: "1" }, "/mcp", {}],
  ["configuration", 500, {}, "/mcp", {}],
])("a body is read to its end if its request is refused for its %s", async (_why, status, env, path, headers) => {
  const PART = new Uint8Array(9_000);
  const bodyOf = (read: { bytes: number }) =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        read.bytes += PART.length;
        controller.enqueue(PART);
        if (read.bytes === 900_000) controller.close();
      },
    });
  const send = async () => {
    const read = { bytes: 0 };
    const init = { method: "POST", body: bodyOf(read), duplex: "half" } as RequestInit;
    const all = { host: "edge.example", "cf-connecting-ip": "192.0.2.7", ...JSON_TYPE, ...headers };
    const response = await app.fetch(new Request(`https://edge.example${path}`, { ...init, headers: all }), env);
    return [response.status, read.bytes];
  };
  if (status === 429) await send();
  expect(await send()).toEqual([status, 900_000]);
});

/** Asks the open deployment, and returns the status and the JSON-RPC message. */
async function ask(message: object, headers: [string, string][] = [], path = "/mcp") {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
  const all: [string, string][] = [["host", "edge.example"], ["content-type", "application/json"], ...headers];
  const request = new Request(`https://edge.example${path}`, { method: "POST", headers: all, body });
  const response = await app.fetch(request, OPEN);
  const text = await response.text();
  return { status: response.status, answer: JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) };
}

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const MODERN: [string, string][] = [
  ["accept", "application/json, text/event-stream"],
  ["mcp-protocol-version", "2026-07-28"],
];

describe("is served:", () => {
  test.each<[what: string, headers: [string, string][], path?: string]>([
    ["no Accept", []],
    ["Accept of anything", [["accept", "*/*"]]],
    ["Accept of a range", [["accept", "text/html, application/*;q=0.9"]]],
    ["Accept of ranges", [["accept", "application/json, text/*"]]],
    ["Accept of JSON alone", [["accept", "application/json"]]],
    ["Accept of streams alone", [["accept", "text/event-stream"]]],
    ["Accept in capitals", [["accept", "Application/JSON, TEXT/EVENT-STREAM"]]],
    ["an address with a slash at its end", [["accept", "*/*"]], "/mcp/"],
    ["a revision that is sent twice", [1, 2].map((): [string, string] => ["mcp-protocol-version", "2025-06-18"])],
  ])("%s", async (_what, headers, path) => {
    for (const foreign of [{}, { nothing: 1 }])
      expect(await ask({ method: "ping", params: foreign }, headers, path)).toMatchObject({
        status: 200,
        answer: { result: {} },
      });
    const modern = headers.filter(([name]) => name === "accept");
    const more = [...MODERN.filter(([name]) => name !== "accept"), ["mcp-method", "server/discover"]] as typeof MODERN;
    expect(
      await ask({ method: "server/discover", params: { _meta: META } }, [...modern, ...more, ...more], path),
    ).toMatchObject({ status: 200, answer: { result: { supportedVersions: ["2026-07-28"] } } });
  });

  // With an unknown parameter the SDK answers, with a stream.
  test.each(["application/json", "text/event-stream"])(
    "a client that reads %s alone, with that type",
    async (accept) => {
      for (const params of [{}, { nothing: 1 }]) {
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping", params });
        const headers = { host: "edge.example", "content-type": "application/json", accept };
        const response = await app.fetch(
          new Request("https://edge.example/mcp", { method: "POST", headers, body }),
          OPEN,
        );
        expect([response.status, response.headers.get("content-type")]).toEqual([200, accept]);
      }
    },
  );

  const CLIENT = { name: "test", version: "1" };
  const LEGACY: [string, string][] = [["accept", "*/*"]];
  const named = (meta: object) => ({
    ...META,
    ...Object.fromEntries(Object.entries(meta).map(([key, value]) => [`io.modelcontextprotocol/${key}`, value])),
  });
  const listing: [string, string][] = [...MODERN, ["mcp-method", "tools/list"]];

  test.each<[what: string, message: object, headers?: [string, string][]]>([
    ["params", { method: "ping", params: null }],
    ["params as a list", { method: "tools/list", params: [] }],
    ["cursor", { method: "tools/list", params: { cursor: null } }],
    ["_meta", { method: "tools/list", params: { _meta: null } }],
    ["_meta as a list", { method: "tools/list", params: { _meta: [] } }],
    ["progressToken", { method: "tools/list", params: { _meta: { progressToken: null } } }],
    [
      "capabilities",
      { method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: null, clientInfo: CLIENT } },
    ],
    [
      "capabilities as lists",
      {
        method: "initialize",
        params: {
          protocolVersion: "2025-11-25",
          capabilities: { roots: [], sampling: null },
          clientInfo: { ...CLIENT, title: null, icons: [] },
        },
      },
    ],
    ["cursor of 2026", { method: "tools/list", params: { cursor: null, _meta: META } }, listing],
    ["capabilities of 2026", { method: "tools/list", params: { _meta: named({ clientCapabilities: [] }) } }, listing],
    [
      "members of 2026",
      {
        method: "tools/list",
        params: {
          _meta: named({
            clientCapabilities: { elicitation: null },
            logLevel: null,
            clientInfo: { ...CLIENT, title: null },
          }),
        },
      },
      listing,
    ],
    ["clientInfo of 2026", { method: "tools/list", params: { _meta: named({ clientInfo: null }) } }, listing],
  ])("nothing in place of %s", async (_what, message, headers = LEGACY) => {
    expect(await ask(message, headers)).toMatchObject({ status: 200, answer: { id: 1, result: {} } });
  });

  test("a call without arguments, and answers without content, and the data of users is unchanged", () => {
    const of = (message: object) => {
      leaveOutEmpty(message);
      return message;
    };
    const _meta = { "com.example/x": null, idempotencyKey: null };
    expect(of({ id: 1, params: { name: "a", arguments: [], _meta } })).toEqual({
      id: 1,
      params: { name: "a", _meta: { "com.example/x": null } },
    });
    const kept = { params: { arguments: { a: null, b: [], capabilities: null }, uris: [], other: null } };
    expect(of(structuredClone(kept))).toEqual(kept);
    expect(of({ id: 1, result: { action: "decline", content: null } })).toEqual({
      id: 1,
      result: { action: "decline" },
    });
    const responses = { q: { action: "accept", content: [], _meta: null } };
    expect(of({ params: { inputResponses: responses } })).toEqual({
      params: { inputResponses: { q: { action: "accept" } } },
    });
  });
});

describe("a body", () => {
  afterEach(() => void vi.useRealTimers());

  test.each([{}, { "content-length": "1000" }])("that never ends is refused after a time (%j)", async (headers) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
    const request = new Request("https://edge.example/mcp", {
      method: "POST",
      body,
      duplex: "half",
      headers: { host: "edge.example", ...JSON_TYPE, ...headers },
    } as RequestInit);
    let status = 0;
    const answered = Promise.resolve(app.fetch(request, { ...BINDINGS, AUTH_MODE: "none" })).then((response) => {
      status = response.status;
    });
    await vi.advanceTimersByTimeAsync(29_000);
    expect(status).toBe(0);
    await vi.advanceTimersByTimeAsync(1_500);
    await answered;
    expect(status).toBe(408);
  });
});

test("an argument that its author has repeated in a header is listed as written, and a header that differs is refused", async () => {
  const days = z.int().meta({ "x-mcp-header": "Days" });
  const report = defineTool({
    name: "report",
    title: "Report",
    description: "Reports.",
    input: z.object({ days: days.default(3), city: z.string().meta({ "x-mcp-header": "City" }).optional() }),
    output: z.object({ days: z.int() }),
    run: async (args) => ({ days: args.days }),
  });
  const edge = createApp({ jobs: [], tools: [report], identity: { info, description: "Tests.", instructions: "" } });
  const send = async (method: string, params: object, headers: Record<string, string>) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const all = { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...headers };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
    const response = await edge.fetch(through("192.0.2.9", "/mcp", all, body), { ...BINDINGS, AUTH_MODE: "none" });
    return [response.status, await response.json()] as [number, { result: { tools: { name: string }[] } }];
  };
  const [, { result }] = await send("tools/list", {}, {});
  expect(result.tools.find(({ name }) => name === "report")).toMatchObject({
    inputSchema: {
      properties: {
        days: { type: "integer", "x-mcp-header": "Days" },
        city: { type: "string", "x-mcp-header": "City" },
      },
    },
  });
  const call = (args: object, headers: Record<string, string>) =>
    send("tools/call", { name: "report", arguments: args }, { "mcp-name": "report", ...headers });
  const mismatch = {
    id: 1,
    error: { code: -32020, message: expect.stringMatching(/^Nothing was done: the header mcp-param-/) },
  };
  expect(await call({ days: 5 }, {})).toEqual([400, { jsonrpc: "2.0", ...mismatch }]);
  expect(await call({ days: 5 }, { "mcp-param-days": "6" })).toEqual([400, { jsonrpc: "2.0", ...mismatch }]);
  expect(await call({ days: 5 }, { "mcp-param-days": "5" })).toMatchObject([
    200,
    { result: { structuredContent: { days: 5 } } },
  ]);
  expect(await call({}, {})).toMatchObject([200, { result: { structuredContent: { days: 3 } } }]);
});
