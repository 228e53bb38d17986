import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client2025 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioClientTransport2025 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/port.ts";
import { type Stack, startStack } from "../support/stack.ts";

let stack: Stack;
/** mcp-remote keeps what it knows of servers in the home directory. */
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "proxy-"));
  stack = await startStack();
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

/** What this test does with a client of either protocol era. */
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

  test("passes options behind the URL on", async () => {
    const refused = clients.current([stack.url, "--header", "Origin: http://elsewhere.example"], () => {});
    await expect(refused).rejects.toThrow();
    const accepted = await clients.current([stack.url, "--header", "Origin: http://localhost"], () => {});
    await accepted.close();
  });

  test("exits with the reason on standard error when nothing answers there", async () => {
    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    const { exitCode, stdout, stderr } = await execa("npm", [...command, url], {
      env: env(),
      extendEnv: false,
      reject: false,
      input: '{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/ECONNREFUSED|fetch failed/);
  });
});
