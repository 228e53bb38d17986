import { buffer } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { serveHttp } from "../testing/stack/http-server.ts";
import { Connection, RequestFailed, ToolRefused } from "./connection.ts";

/**
 * A server with four tools: `slow` answers when `finish` is called, `refused` refuses, `away` answers HTTP 503 once. `busy`
 * answers HTTP 429 for 1.5 seconds, and asks for a pause of two. The first `refusals` clients that connect get HTTP 429 too.
 */
async function serve({ refusals = 0 } = {}) {
  const calls: string[] = [];
  const finish: (() => void)[] = [];
  let busyUntil: number | undefined;
  const server = await serveHttp(async (request, response) => {
    const { id, method, params } = JSON.parse((await buffer(request)).toString() || "{}");
    const send = (answer: object) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    };
    const text = (isError: boolean) => ({ result: { content: [{ type: "text", text: "no" }], isError } });
    if (request.method !== "POST") return response.writeHead(405).end();
    if (id === undefined) return response.writeHead(202).end();
    if (method === "initialize") {
      if (refusals-- > 0) return response.writeHead(429).end();
      const info = { protocolVersion: "2025-11-25", serverInfo: { name: "s", version: "1" } };
      return send({ result: { ...info, capabilities: { tools: {} } } });
    }
    if (method !== "tools/call") return send({ error: { code: -32601, message: "no such method" } });
    calls.push(params.name);
    if (params.name === "slow") return finish.push(() => send(text(false)));
    if (params.name === "refused") return send(text(true));
    if (params.name === "busy") {
      busyUntil ??= performance.now() + 1_500;
      if (performance.now() < busyUntil) return response.writeHead(429, { "retry-after": "2" }).end();
    }
    if (calls.filter((name) => name === "away").length === 1) return response.writeHead(503).end();
    return send(text(false));
  });
  const connection = new Connection({ url: new URL(server.url) });
  const slow = connection.call("slow", {});
  await expect.poll(() => finish, { timeout: 10_000 }).toHaveLength(1);
  return { calls, finish, connection, slow, [Symbol.asyncDispose]: server[Symbol.asyncDispose] };
}

test("a call that a tool refuses does not disturb a call under way", async () => {
  await using server = await serve();
  await expect(server.connection.call("refused", {})).rejects.toThrow(ToolRefused);
  server.finish[0]?.();
  expect(await server.slow).toEqual({});
  expect(server.calls).toEqual(["slow", "refused"]);
  await server.connection.close();
});

test("a call under way is repeated if another one finds the server away", async () => {
  await using server = await serve();
  expect(await server.connection.call("away", {})).toEqual({});
  await expect.poll(() => server.finish).toHaveLength(2);
  server.finish[1]?.();
  expect(await server.slow).toEqual({});
  await server.connection.close();
});

test("a connection that its user closes ends the calls under way", async () => {
  await using server = await serve();
  await server.connection.close();
  await expect(server.slow).rejects.toThrow();
  expect(server.calls).toEqual(["slow"]);
});

test("a start under way is ended when its user closes the connection", async () => {
  await using server = await serve();
  const outcomes = Promise.allSettled([server.connection.start("slow", {}), server.slow]);
  await expect.poll(() => server.finish).toHaveLength(2);
  await server.connection.close();
  expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

test("a start that the server does not answer is repeated", async () => {
  await using server = await serve();
  const timeout = AbortSignal.timeout;
  const now = Date.now;
  let ahead = 0;
  using _time = vi.spyOn(Date, "now").mockImplementation(() => now() + ahead);
  using _timeout = vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const signal = timeout(1_000);
    signal.addEventListener("abort", () => (ahead += ms));
    return signal;
  });
  const start = server.connection.start("slow", {});
  await expect.poll(() => server.finish, { timeout: 10_000 }).toHaveLength(3);
  server.finish[2]?.();
  expect(await start).toMatchObject({ isError: false });
  server.finish[0]?.();
  await server.slow;
  await server.connection.close();
});

test("a client that could not connect is replaced", async () => {
  await using server = await serve({ refusals: 1 });
  server.finish[0]?.();
  expect(await server.slow).toEqual({});
  await server.connection.close();
});

test("a server that is busy is asked again after the time that it names, and other calls continue", async () => {
  await using server = await serve();
  expect(await server.connection.call("busy", {})).toEqual({});
  expect(server.calls).toEqual(["slow", "busy", "busy"]);
  server.finish[0]?.();
  expect(await server.slow).toEqual({});
  await server.connection.close();
});

test("a pause ends with its call, and with the connection", async () => {
  await using server = await serve();
  const stop = new AbortController();
  const stoppedCall = server.connection.call("busy", {}, { signal: stop.signal });
  const lastCall = server.connection.call("busy", {});
  const outcomes = Promise.allSettled([stoppedCall, lastCall, server.slow]);
  await expect.poll(() => server.calls).toEqual(["slow", "busy", "busy"]);
  const start = performance.now();
  stop.abort(new Error("enough"));
  await expect(stoppedCall).rejects.toThrow("enough");
  await server.connection.close();
  await expect(lastCall).rejects.toThrow();
  await outcomes;
  expect(performance.now() - start).toBeLessThan(1_000);
  expect(server.calls).toEqual(["slow", "busy", "busy"]);
});

test.each([
  [401, "token refused"],
  [403, "token refused"],
  [404, "refused"],
  [503, "unavailable"],
  [429, "unavailable"],
])("an answer %i in place of each tool's says that the request is %s", async (status, why) => {
  await using server = await serveHttp((_request, response) => void response.writeHead(status).end("no"));
  const connection = new Connection({ url: new URL(server.url), token: "t", retryMs: 0 });
  for (const ask of [() => connection.call("any", {}), () => connection.start("any", {})]) {
    const failure = await ask().catch((error) => error);
    expect(failure).toBeInstanceOf(RequestFailed);
    expect(failure.why).toBe(why);
  }
  await connection.close();
});

test("a server that does not answer is unavailable", async () => {
  const server = await serveHttp((request) => void request.socket.destroy());
  const connection = new Connection({ url: new URL(server.url), retryMs: 0 });
  await expect(connection.call("any", {})).rejects.toMatchObject({ why: "unavailable" });
  await expect(connection.start("any", {})).rejects.toMatchObject({ why: "unavailable" });
  await server[Symbol.asyncDispose]();
  await expect(connection.call("any", {})).rejects.toMatchObject({ why: "unavailable" });
  await connection.close();
});
