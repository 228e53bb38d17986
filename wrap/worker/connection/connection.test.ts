import { once } from "node:events";
import { createServer, type IncomingMessage as Request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { Connection } from "./connection.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;

afterEach(() => vi.useRealTimers());

/**
 * A connection to a server of the 2025-11-25 revision that never answers messages of which `isIgnored` is true. `ignored` resolves
 * with the next of them, and its response; `methods` has the methods of all messages.
 */
async function connected(isIgnored: (message: Record<string, unknown>) => boolean) {
  const methods: unknown[] = [];
  let next = Promise.withResolvers<ServerResponse>();
  const answer = async (request: Request, response: ServerResponse) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const message = JSON.parse((await request.toArray()).join(""));
    methods.push(message.method);
    if (isIgnored(message)) return next.resolve(response);
    if (message.id === undefined) return void response.writeHead(202).end();
    const result =
      message.method === "initialize"
        ? {
            protocolVersion: "2025-11-25",
            capabilities: { resources: { subscribe: true } },
            serverInfo: { name: "acme", version: "1" },
          }
        : {};
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "s" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const connection = await Connection.open({
    target: { url, headers: {}, fetch },
    log,
    revision: undefined,
    onListsChanged() {},
    asked: "2025-11-25",
    timeout: 5_000,
  });
  const ignored = async () => {
    const response = await next.promise;
    next = Promise.withResolvers();
    return response;
  };
  const close = async () => {
    await connection.close();
    server.closeAllConnections();
    server.close();
  };
  return { connection, ignored, methods, [Symbol.asyncDispose]: close };
}

const fakeTime = () => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });

test("the connection of an answer to a server's request is closed if the server does not accept the answer", async () => {
  await using server = await connected(({ method }) => method === undefined);
  fakeTime();
  const responded = server.connection
    .respond(server.connection.session, "question", { action: "accept" })
    .catch((error: Error) => error.message);
  const closed = once(await server.ignored(), "close");
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await responded).toBe("the server has not accepted an answer in time");
  await closed;
});
