import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { serveHttp } from "../testing/stack/http-server.ts";
import { Connection, ToolRefused } from "./connection.ts";

/** A server with three tools: `slow` answers when `finish` is called, `refused` refuses, `away` answers HTTP 503 once. */
async function serve() {
  const called: string[] = [];
  const finish: (() => void)[] = [];
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
      const info = { protocolVersion: "2025-11-25", serverInfo: { name: "s", version: "1" } };
      return send({ result: { ...info, capabilities: { tools: {} } } });
    }
    if (method !== "tools/call") return send({ error: { code: -32601, message: "no such method" } });
    called.push(params.name);
    if (params.name === "slow") return finish.push(() => send(text(false)));
    if (params.name === "refused") return send(text(true));
    if (called.filter((name) => name === "away").length === 1) return response.writeHead(503).end();
    return send(text(false));
  });
  const connection = new Connection({ url: new URL(server.url) });
  const slow = connection.call("slow", {});
  await expect.poll(() => finish).toHaveLength(1);
  return { ...{ called, finish, connection, slow }, [Symbol.asyncDispose]: server[Symbol.asyncDispose] };
}

test("a call that a tool refuses does not disturb a call under way", async () => {
  await using server = await serve();
  await expect(server.connection.call("refused", {})).rejects.toThrow(ToolRefused);
  server.finish[0]?.();
  expect(await server.slow).toEqual({});
  expect(server.called).toEqual(["slow", "refused"]);
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
  expect(server.called).toEqual(["slow"]);
});
