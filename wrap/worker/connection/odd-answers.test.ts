/** Answers outside of the protocol's letter, and calls whose headers repeat arguments. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { expect, test } from "vitest";
import { serveHttp } from "../../../testing/stack/http-server.ts";
import { CallRefused, RpcError } from "../host/errors.ts";
import { WrappedServer } from "../wrapped-server.ts";

const SILENT_LOG = { debug() {}, info() {}, warn() {}, error() {} };
const JSON_TYPE = { "content-type": "application/json" };

type Message = { id?: string; method: string; params: Record<string, unknown> };
type Answer = (message: Message, response: ServerResponse, request: IncomingMessage) => void;

/** A server of a revision, whose other requests `answer` answers. */
async function serve(revision: "2025-11-25" | "2026-07-28", answer: Answer) {
  const http = await serveHttp(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const message = (await json(request)) as Message;
    const { id, method } = message;
    const serverInfo = { name: "acme", version: "1", title: null };
    const session = { capabilities: { tools: { listChanged: null }, prompts: null }, serverInfo, instructions: null };
    const send = (result: object) =>
      response.writeHead(200, JSON_TYPE).end(`\ufeff${JSON.stringify({ jsonrpc: "2.0", id, result })}`);
    if (id === undefined) response.writeHead(202).end();
    else if (method === "initialize" && revision === "2025-11-25") send({ protocolVersion: revision, ...session });
    else if (method === "server/discover" && revision === "2026-07-28")
      send({ resultType: "complete", supportedVersions: [revision], ttlMs: 0, cacheScope: "private", ...session });
    else answer(message, response, request);
  });
  const server = new WrappedServer({ name: "acme", url: http.url, allowPrivate: true, revision }, {});
  return {
    server,
    async [Symbol.asyncDispose]() {
      await server.close();
      await http[Symbol.asyncDispose]();
    },
  };
}

/** The error of a call, to which a server of the 2025-11-25 revision answers like this. */
async function callError(answer: Answer): Promise<unknown> {
  await using acme = await serve("2025-11-25", (message, response, request) => {
    if (message.method !== "tools/list") return answer(message, response, request);
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { tools: [] } }));
  });
  const connection = await acme.server.connection("acme.read.1", SILENT_LOG);
  const { result } = connection.request("tools/call", { name: "read", arguments: {} });
  return await result.catch((error) => error);
}

const error = { code: -32042, message: "no such page", data: { page: 5 } };

test.each([
  ["400", 400, (id: unknown) => id],
  ["500", 500, (id: unknown) => id],
  ["200 and no id", 200, () => null],
])("a protocol error that comes with %s keeps its code and data", async (_what, status, idOf) => {
  const answer: Answer = ({ id }, response) =>
    void response.writeHead(status, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id: idOf(id), error }));
  const got = await callError(answer);
  expect(got).toBeInstanceOf(RpcError);
  expect(got).toMatchObject(error);
});

test("integers in the data of an error keep their digits, also with an HTTP status", async () => {
  const data = '{"account":725653563933458433,"limit":1.5}';
  const got = await callError(
    ({ id }, response) =>
      void response
        .writeHead(400, JSON_TYPE)
        .end(`{"jsonrpc":"2.0","id":"${id}","error":{"code":-32042,"message":"no","data":${data}}}`),
  );
  expect(got).toBeInstanceOf(RpcError);
  expect(JSON.stringify((got as RpcError).data)).toBe(data);
});

test.each([200, 400])("an answer that is nested too deep is refused with words (HTTP %s)", async (status) => {
  const deep = `${"[".repeat(50_000)}725653563933458433${"]".repeat(50_000)}`;
  const got = await callError(({ id }, response) => {
    const body = status === 200 ? `"result":{"x":${deep}}` : `"error":{"code":1,"message":"no","data":${deep}}`;
    response.writeHead(status, JSON_TYPE).end(`{"jsonrpc":"2.0","id":"${id}",${body}}`);
  });
  expect(got).toBeInstanceOf(RpcError);
  expect((got as Error).message).toMatch(/nested more than 1000 levels/);
});

test("nulls in a server's description, in an event stream, count as absent, and integers and too large numbers stay apart", async () => {
  const answer = '{"n":725653563933458433,"x":1e400}';
  await using http = await serveHttp(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method } = (await json(request)) as Message;
    if (id === undefined) return void response.writeHead(202).end();
    const session = `"capabilities":{"tools":null},"serverInfo":{"name":"acme","version":"1","title":null},"instructions":null`;
    const result =
      method === "server/discover"
        ? `{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private",${session}}`
        : `{"resultType":"complete","structuredContent":${answer}}`;
    response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(`event: message\ndata: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n\n`);
  });
  const server = new WrappedServer({ name: "acme", url: http.url, allowPrivate: true }, {});
  const connection = await server.connection("acme.read.1", SILENT_LOG);
  expect(connection.revision).toBe("2026-07-28");
  const { structuredContent } = await connection.request("tools/call", { name: "read", arguments: {} }).result;
  expect(structuredContent).toEqual({ n: JSON.rawJSON("725653563933458433"), x: Number.POSITIVE_INFINITY });
  await server.close();
});

test.each([
  ["202", (_message: Message, response: ServerResponse) => void response.writeHead(202).end()],
  [
    "another id",
    (_message: Message, response: ServerResponse) =>
      void response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id: "another", result: {} })),
  ],
])("a call that is answered with %s ends at once", async (_what, answer) => {
  const got = await callError(answer);
  expect(got).toBeInstanceOf(RpcError);
  expect((got as Error).message).toMatch(/its response has no answer to it/);
});

test("a server that has restarted and says that it is not initialized has forgotten the session", async () => {
  const refusal = { code: -32000, message: "Bad Request: Server not initialized" };
  const got = await callError(
    (_message, response) =>
      void response.writeHead(400, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id: null, error: refusal })),
  );
  expect(got).toBeInstanceOf(CallRefused);
  expect(got).toMatchObject({ why: "session" });
});

test("arguments are repeated in headers; if the server refuses them, they are those of its list as it is now, once", async () => {
  let name = "City";
  const calls: unknown[] = [];
  await using acme = await serve("2026-07-28", ({ id, method, params }, response, { headers }) => {
    const tools = [
      {
        name: "report",
        inputSchema: { type: "object", properties: { city: { type: "string", "x-mcp-header": name } } },
      },
    ];
    const send = (status: number, answer: object) =>
      response.writeHead(status, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    if (method === "tools/list")
      return void send(200, { result: { resultType: "complete", tools, ttlMs: 0, cacheScope: "private" } });
    const sent = headers[`mcp-param-${name.toLowerCase()}`];
    calls.push(sent);
    if (sent === undefined || params.name === "never")
      send(400, { error: { code: -32020, message: "headers and body disagree" } });
    else send(200, { result: { resultType: "complete", content: [] } });
  });
  const connection = await acme.server.connection("acme.report.1", SILENT_LOG);
  const call = (tool: string) =>
    connection.request("tools/call", { name: tool, arguments: { city: "Zürich" } }).result.catch((error) => error);
  expect(await call("report")).toMatchObject({ content: [] });
  name = "Town";
  expect(await call("report")).toMatchObject({ content: [] });
  expect(calls).toEqual(["=?base64?WsO8cmljaA==?=", undefined, "=?base64?WsO8cmljaA==?="]);
  expect(await call("never")).toMatchObject({ code: -32020 });
  expect(calls).toHaveLength(5);
});

/**
 * A program that writes a byte order mark first, answers only requests whose ids are small integers, and answers a call by the name
 * of its tool: with an error that names no id, under another id, or with the id as text.
 */
const ODD_PROGRAM = `
process.stdout.write("\\ufeff");
require("node:readline").createInterface(process.stdin).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (!Number.isInteger(id) || id > 100) return;
  const session = { protocolVersion: "2025-11-25", capabilities: { tools: null }, serverInfo: { name: "acme", version: "1" }, instructions: null };
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  if (method === "initialize") return send({ id, result: session });
  const { progressToken } = params._meta ?? {};
  if (progressToken !== undefined) send({ method: "notifications/progress", params: { progressToken, progress: 5 } });
  if (params.name === "no id") send({ id: null, error: { code: -32600, message: "an id is a number" } });
  else if (params.name === "another id") send({ id: "another", result: {} });
  else send({ id: String(id), result: { content: [], of: typeof progressToken } });
});`;

test.each([false, true])(
  "a program may write a byte order mark, null for what it lacks, and odd ids, and take small integers only (with a program host: %s)",
  async (isHosted) => {
    const options = {
      name: "acme",
      command: process.execPath,
      args: ["-e", ODD_PROGRAM],
      revision: "2025-11-25",
      keep: 1_000,
    };
    const server = new WrappedServer(options, process.env, isHosted);
    const connection = await server.connection("acme.read.1", SILENT_LOG);
    expect(connection.revision).toBe("2025-11-25");
    const progress: unknown[] = [];
    const call = (name: string) =>
      connection.request(
        "tools/call",
        { name, arguments: {} },
        { isRecoverable: true, onProgress: ({ progress: done }) => progress.push(done) },
      ).result;
    expect(await call("read")).toEqual({ content: [], of: "number" });
    expect(progress).toEqual([5]);
    await expect(call("another id")).rejects.toMatchObject({ message: expect.stringMatching(/under another id/) });
    await expect(call("no id")).rejects.toMatchObject({ code: -32600, message: "an id is a number" });
    await server.close();
  },
);
