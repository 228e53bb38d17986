import type { ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { expect, test } from "vitest";
import type { Context, Step } from "../../core/author/context.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { runCall } from "./call/run-call.ts";
import { WrappedServer } from "./wrapped-server.ts";

const SILENT_LOG = { debug() {}, info() {}, warn() {}, error() {} };

/** A server that opens a session for each connection, and answers no other request. */
async function serveSessions() {
  let sessions = 0;
  const whose = new Set<unknown>();
  const http = await serveHttp(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    whose.add(request.headers["x-whose"]);
    const { id, method } = (await json(request)) as { id?: string; method: string };
    if (method !== "initialize") return void response.writeHead(202).end();
    const serverInfo = { name: "acme", version: "1" };
    const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo };
    response
      .writeHead(200, { "content-type": "application/json", "mcp-session-id": `session ${++sessions}` })
      .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const options = { name: "acme", url: http.url, allowPrivate: true, revision: "2025-11-25" };
  return { options, whose, [Symbol.asyncDispose]: () => http[Symbol.asyncDispose]() };
}

test.each([{}, { credentials: "WHO" }])("the first calls at once share one connection, with %j", async (more) => {
  await using acme = await serveSessions();
  const server = new WrappedServer({ ...acme.options, ...more }, { WHO: '{ "*": { "x-whose": "all" } }' });
  const jobs = ["acme.read.1", "acme.read.2", "acme.read.3"];
  const connections = await Promise.all(jobs.map((job) => server.connection(job, SILENT_LOG)));
  expect(connections.map(({ session }) => session.sessionId)).toEqual(jobs.map(() => "session 1"));
  await server.close();
});

test.each([
  ["the credentials of all others", { ada: { "x-whose": "ada's" }, "*": { "x-whose": "all" } }, "all"],
  ["the headers that everyone gets", { ada: { "x-whose": "ada's" } }, "nobody's"],
])("without a caller, the server is asked for its lists with %s", async (_what, credentials, whose) => {
  await using acme = await serveSessions();
  const options = { ...acme.options, headers: { "x-whose": "nobody's" }, credentials: "WHO" };
  const server = new WrappedServer(options, { WHO: JSON.stringify(credentials) });
  await server.currentSnapshot(SILENT_LOG);
  expect([...acme.whose]).toEqual([whose]);
  // A call must not share that connection.
  if (!("*" in credentials))
    await expect(server.connection("acme.read.1", SILENT_LOG)).rejects.toThrow(/no credentials/);
  await server.close();
});

test("a connection whose session the server has forgotten is replaced, and its other calls continue", async () => {
  const open: ServerResponse[] = [];
  let sessions = 0;
  await using http = await serveHttp(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method } = (await json(request)) as { id?: string; method: string };
    const answer = (result: object, headers = {}) =>
      response
        .writeHead(200, { "content-type": "application/json", ...headers })
        .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    const serverInfo = { name: "acme", version: "1" };
    const sessionResult = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo };
    if (method === "initialize") answer(sessionResult, { "mcp-session-id": `session ${++sessions}` });
    else if (method === "tools/call") open.push(response.once("answer", () => answer({ content: [] })));
    else response.writeHead(202).end();
  });
  const options = { name: "acme", url: http.url, allowPrivate: true, revision: "2025-11-25" };
  const server = new WrappedServer(options, {});
  const before = await server.connection("acme.write.1", SILENT_LOG);
  const call = before.request("tools/call", { name: "write" });
  await expect.poll(() => open.length).toBe(1);
  await server.drop("acme.write.1", before, SILENT_LOG);
  const session = async () => (await server.connection("acme.write.1", SILENT_LOG)).session.sessionId;
  // A connection that lasted for a moment only is replaced after a pause.
  await expect.poll(session, { timeout: 5_000 }).toBe("session 2");
  open[0]?.emit("answer");
  expect(await call.result).toEqual({ content: [] });
  await server.close();
});

test("a call does not wait for a server that never sets its log level", { timeout: 20_000 }, async () => {
  await using http = await serveHttp(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method } = (await json(request)) as { id?: string; method: string };
    if (method === "logging/setLevel") return;
    const serverInfo = { name: "acme", version: "1" };
    const result = { protocolVersion: "2025-11-25", capabilities: { logging: {} }, serverInfo };
    if (id === undefined) response.writeHead(202).end();
    else
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const options = { name: "acme", url: http.url, allowPrivate: true, revision: "2025-11-25" };
  const server = new WrappedServer(options, {});
  const connection = await server.connection("acme.read.1", SILENT_LOG);
  await connection.requestLogs("info");
  expect(connection.isIdle).toBe(true);
  await server.close();
});

test.each([true, false])(
  "an error says in words that there is no such program, with a program host: %s",
  async (isHosted) => {
    const server = new WrappedServer({ name: "acme", command: "no-such-program" }, { ...process.env }, isHosted);
    await expect(server.connection("acme.read.1", SILENT_LOG)).rejects.toThrow(
      "acme cannot be reached: there is no such program",
    );
  },
);

/** A program whose tool becomes a task of eight seconds. */
const TASK_PROGRAM = `
let end;
const write = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const say = (id, result) => write({ id, result });
require("node:readline").createInterface(process.stdin).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize")
    say(id, { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "acme", version: "1" } });
  else if (method === "tools/call") {
    end = Date.now() + 8_000;
    say(id, { resultType: "task", taskId: "t", pollIntervalMs: 1_000 });
  } else if (method === "tasks/get")
    say(id, Date.now() < end ? { status: "working" } : { status: "completed", result: { content: [] } });
  else if (id !== undefined) write({ id, error: { code: -32601, message: "unknown" } });
});`;

test("a program whose connection is replaced continues until its task has finished", { timeout: 60_000 }, async () => {
  const program = { command: process.execPath, args: ["-e", TASK_PROGRAM], keep: 30_000 };
  const server = new WrappedServer({ name: "acme", ...program }, { ...process.env }, true);
  const { signal } = new AbortController();
  const deadline = Date.now() + 3_600_000;
  const attempt = { signal, deadline, attempt: 1, log: SILENT_LOG, progress() {} } as unknown as Step;
  const taskStart = Promise.withResolvers<void>();
  const step = (name: string, run: (step: Step) => unknown) => {
    if (name.startsWith("task")) taskStart.resolve();
    return run(attempt);
  };
  const ctx = { jobName: "acme.report.1", deadline, signal, step } as unknown as Context;
  const before = await server.connection(ctx.jobName, SILENT_LOG);
  const result = runCall(server, ctx, { tool: "report", arguments: {}, key: "1", once: true });
  await Promise.race([taskStart.promise, result]);
  expect(server.fallBack(SILENT_LOG)).toBe(true);
  expect(await result).toEqual({ content: [] });
  await before.end;
  await server.close();
});

/** A program whose tools change while they are listed for the second time, which takes a while. */
const CHANGING_PROGRAM = `
let listings = 0;
const write = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const capabilities = { tools: { listChanged: true } };
const session = { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "acme", version: "1" } };
const list = (id, name) => write({ id, result: { tools: [{ name, inputSchema: { type: "object" } }] } });
require("node:readline").createInterface(process.stdin).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize") write({ id, result: session });
  if (method !== "tools/list") return;
  listings += 1;
  if (listings === 2) setTimeout(list, 1_000, id, "before");
  else list(id, "now");
  if (listings <= 2) write({ method: "notifications/tools/list_changed" });
});`;

test("of two changes of the tools, the later one counts, also if the answer about the earlier one comes last", async () => {
  const program = { command: process.execPath, args: ["-e", CHANGING_PROGRAM], revision: "2025-11-25" };
  const server = new WrappedServer({ name: "acme", ...program }, {});
  const names: (string | undefined)[] = [];
  server.onTools = ({ tools }) => void names.push(tools[0]?.name);
  const connection = await server.connection("acme.read.1", SILENT_LOG);
  await expect.poll(() => names, { timeout: 5_000 }).toEqual(["now", "before", "now"]);
  expect(connection.tools[0]?.name).toBe("now");
  await server.close();
});
