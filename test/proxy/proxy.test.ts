import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client2025 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioClientTransport2025 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { freePort } from "../../testing/stack/port.ts";
import { until } from "../../testing/stack/program.ts";
import { rpcMessage } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { CAPABILITIES } from "../tasks/support.ts";

let stack: Stack;
/** The home directory, in which mcp-remote stores its data about servers. */
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "proxy-"));
  stack = await startStack();
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

/** The methods of a client of either era that this test uses. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<object>;
  close(): Promise<void>;
}

const info = { name: "stdio-test", version: "1" };
const clients = {
  async current(args: string[], onerror: (error: Error) => void): Promise<AnyClient> {
    const client = new Client(info);
    await client.connect(Object.assign(new StdioClientTransport(server(args)), { onerror }));
    return client;
  },
  async "2025-era"(args: string[], onerror: (error: Error) => void): Promise<AnyClient> {
    const client = new Client2025(info);
    await client.connect(Object.assign(new StdioClientTransport2025(server(args)), { onerror }) as never);
    return client as AnyClient;
  },
};

const command = ["run", "--silent", "proxy", "--"];
const env = () => ({ PATH: process.env.PATH ?? "", HOME: home });
const server = (args: string[]) => ({
  command: "npm",
  args: [...command, ...args],
  env: env(),
  stderr: "ignore" as const,
});

interface Message {
  id?: unknown;
  method: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
  result?: any;
  error?: { message: string };
}

/** Starts a server in front of another one, and calls `tell` with each message and the name in its header. */
const startFront = (target: string, tell: (message: Message, name: string | undefined) => void) =>
  serveHttp(async (request, response) => {
    const body = request.method === "POST" ? await text(request) : undefined;
    if (body !== undefined) tell(JSON.parse(body), request.headers["mcp-name"] as string | undefined);
    const { host, connection, "content-length": _, ...headers } = request.headers;
    const options = { method: request.method ?? "GET", headers: headers as HeadersInit, body: body ?? null };
    const answer = await fetch(target + request.url, options);
    const type = answer.headers.get("content-type");
    response.writeHead(answer.status, type === null ? {} : { "content-type": type });
    response.end(await answer.text());
  });

/** Starts the proxy with a client of the 2026-07-28 revision, which sends one message a line. */
function startProxy(url: string) {
  const proxy = execa("npm", [...command, url], { env: env(), extendEnv: false, reject: false, buffer: false });
  const answers = new Map<unknown, Message>();
  (async () => {
    for await (const line of proxy.iterable()) {
      const message = JSON.parse(line as string) as Message;
      answers.set(message.id, message);
    }
  })().catch(() => {});
  let last = 0;
  return {
    async request(method: string, params: object) {
      const id = ++last;
      proxy.stdin.write(`${JSON.stringify({ ...rpcMessage(method, params, CAPABILITIES), id })}\n`);
      const { result, error } = await until(`the answer to ${method}`, () => answers.get(id), 60_000);
      if (error) throw new Error(error.message);
      return result;
    },
    async [Symbol.asyncDispose]() {
      proxy.kill();
      await proxy;
    },
  };
}

describe.concurrent("npm run proxy", () => {
  test.each(["current", "2025-era"] as const)("connects a %s stdio client with the hosted URL", async (era) => {
    const errors: Error[] = [];
    const client = await clients[era]([stack.url], (error) => errors.push(error));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["set_timer", "await_result"]));
    await client.callTool({ name: "set_timer", arguments: { timer_name: era, seconds: 1 } });
    const awaited = await client.callTool({ name: "await_result", arguments: { job_names: [`timer_${era}`] } });
    expect(awaited).toMatchObject({ structuredContent: { results: { [`timer_${era}`]: expect.anything() } } });
    expect(errors, "anything but JSON-RPC on standard output").toEqual([]);
    await client.close();
  });

  test("lets a client use tasks, and names the task in the header of each request as the protocol demands", async () => {
    const seen: { method: string; name: string | undefined }[] = [];
    await using front = await startFront(stack.origin, (message, name) => seen.push({ method: message.method, name }));
    await using client = startProxy(`${front.url}/mcp`);
    const created = await client.request("tools/call", {
      name: "weather_range",
      arguments: { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2014-02" },
    });
    expect(created).toMatchObject({ resultType: "task" });
    const { taskId } = created;
    const task = await until("the question", async () => {
      const task = await client.request("tasks/get", { taskId });
      return task.status === "input_required" ? task : undefined;
    });
    const [key = ""] = Object.keys(task.inputRequests);
    await client.request("tasks/update", { taskId, inputResponses: { [key]: { action: "decline" } } });
    await client.request("tasks/cancel", { taskId });
    const asked = seen.filter(({ method }) => method.startsWith("tasks/"));
    expect(new Set(asked.map(({ method }) => method))).toEqual(new Set(["tasks/get", "tasks/update", "tasks/cancel"]));
    expect(new Set(asked.map(({ name }) => name))).toEqual(new Set([taskId]));
  });

  test("passes on options after the URL", async () => {
    const refused = clients.current([stack.url, "--header", "Origin: http://elsewhere.example"], () => {});
    await expect(refused).rejects.toThrow();
    const accepted = await clients.current([stack.url, "--header", "Origin: http://localhost"], () => {});
    await accepted.close();
  });

  test("says in one line on standard error that no server answers and how to start it", async () => {
    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    const { exitCode, stdout, stderr } = await execa("npm", [...command, url], {
      env: env(),
      extendEnv: false,
      reject: false,
      input: '{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toBe(
      `No server answers at ${url} (ECONNREFUSED). Start it: npm start; or give its URL: npm run --silent proxy -- URL`,
    );
  });
});
