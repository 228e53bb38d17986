import { once } from "node:events";
import { createServer, type IncomingMessage as Request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { CallRefused } from "../host/errors.ts";
import { Connection } from "./connection.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;

afterEach(() => vi.useRealTimers());

/**
 * A connection to a server of the 2025-11-25 revision that never answers messages of which `isIgnored` is true. `nextIgnored` resolves
 * with the next of them, and its response; `methods` has the methods of all messages.
 */
async function startConnection(isIgnored: (message: Record<string, unknown>) => boolean) {
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
    fixedRevision: "2025-11-25",
    timeout: 5_000,
  });
  const nextIgnored = async () => {
    const response = await next.promise;
    next = Promise.withResolvers();
    return response;
  };
  const close = async () => {
    await connection.close();
    server.closeAllConnections();
    server.close();
  };
  return { connection, nextIgnored, methods, [Symbol.asyncDispose]: close };
}

const fakeTime = () => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });

test("the resumption of a stream ends if the server says that it resumes none", async () => {
  await using server = await startConnection(() => false);
  const stream = { session: "s", request: "wrapped-1", event: "1", revision: "2025-11-25" };
  await expect(server.connection.resume(stream, {}).result).rejects.toBeInstanceOf(CallRefused);
});

/** A program that says a thousand things, and asks as many, before it answers a ping. */
const CHATTY_PROGRAM = `
const write = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
require("node:readline").createInterface(process.stdin).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const params = { level: "info", data: "I am here" };
  for (let n = 0; method === "ping" && n < 1_000; n++) {
    write({ method: "notifications/message", params });
    write({ id: n, method: "sampling/createMessage", params: {} });
  }
  const session = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "acme", version: "1" } };
  if (method && id !== undefined) write({ id, result: method === "initialize" ? session : {} });
});`;

/** A result with an integer that a number cannot hold, and texts that look as if they were numbers. */
const EXACT_RESULT = '{"id":725653563933458432,"list":[-12345678901234567890,1.5],"text":"12345678901234567890 \\" 1"}';

const EXACT_PROGRAM = `
require("node:readline").createInterface(process.stdin).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const session = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "acme", version: "1" } };
  const result = method === "initialize" ? JSON.stringify(session) : ${JSON.stringify(EXACT_RESULT)};
  if (method && id !== undefined) process.stdout.write(\`{"jsonrpc":"2.0","id":\${JSON.stringify(id)},"result":\${result}}\\n\`);
});`;

test.each(["application/json", "text/event-stream", "a program"])(
  "an integer that a number cannot hold keeps its digits in an answer as %s",
  async (type) => {
    await using server = await startConnection(({ method }) => method === "ask");
    const program = { command: process.execPath, args: ["-e", EXACT_PROGRAM], env: {}, cwd: process.cwd() };
    const options = { log, revision: "2025-11-25", onListsChanged() {}, fixedRevision: undefined, timeout: 5_000 };
    const connection =
      type === "a program"
        ? await Connection.open({ target: { ...program, hosting: undefined }, ...options })
        : server.connection;
    const request = connection.request("ask", {}, { id: "wrapped-ask" });
    if (type !== "a program") {
      const message = `{"jsonrpc":"2.0","id":"wrapped-ask","result":${EXACT_RESULT}}`;
      const response = await server.nextIgnored();
      response.writeHead(200, { "content-type": type });
      // A network may cut a stream anywhere.
      for (const part of type === "application/json" ? [message] : ["data: ", ...message, "\n\n"]) response.write(part);
      response.end();
    }
    expect(JSON.stringify(await request.result)).toBe(EXACT_RESULT);
    if (connection !== server.connection) await connection.close();
  },
);

test("of a server's messages and refused requests, 20 each in a second are logged", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const says: unknown[] = [];
  const info = (_message: string, fields: { says?: unknown }) => says.push(fields.says);
  const warn = vi.fn<() => void>();
  const program = {
    command: process.execPath,
    args: ["-e", CHATTY_PROGRAM],
    env: {},
    cwd: process.cwd(),
    hosting: undefined,
  };
  const connection = await Connection.open({
    target: program,
    log: { debug() {}, info, warn } as never,
    revision: "2025-11-25",
    onListsChanged() {},
    fixedRevision: undefined,
    timeout: 5_000,
  });
  await connection.request("ping", {}).result;
  expect([says.length, warn.mock.calls.length]).toEqual([20, 20]);
  vi.setSystemTime(Date.now() + 1_000);
  await connection.request("ping", {}).result;
  await connection.close();
  expect(says[0]).toBe("I am here");
  expect([says.length, warn.mock.calls.length]).toEqual([40, 40]);
});

test("the connection of an answer to a server's request is closed if the server does not accept the answer", async () => {
  await using server = await startConnection(({ method }) => method === undefined);
  fakeTime();
  const response = server.connection
    .respond(server.connection.session, "question", { action: "accept" })
    .catch((error: Error) => error.message);
  const close = once(await server.nextIgnored(), "close");
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await response).toBe("the server has not accepted an answer in time");
  await close;
});

test.each(["nobody waits for its changes", "the server has forgotten the session"])(
  "a subscription that a server neither confirms nor ends does not keep a connection in use when %s",
  async (why) => {
    await using server = await startConnection(({ method }) => /subscribe$/.test(String(method)));
    const { connection, nextIgnored, methods } = server;
    fakeTime();
    const stop = new AbortController();
    const next = connection.updates.next("acme://a", undefined, stop.signal).catch(() => {});
    await nextIgnored();
    expect(connection.isIdle).toBe(false);
    if (why.startsWith("nobody")) stop.abort(new Error("the job has ended"));
    else connection.updates.close(new Error(why));
    await vi.advanceTimersByTimeAsync(60_000);
    await nextIgnored();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(connection.isIdle).toBe(true);
    expect(methods.slice(-2)).toEqual(["resources/subscribe", "resources/unsubscribe"]);
    stop.abort(new Error("the job has ended"));
    await next;
  },
);
