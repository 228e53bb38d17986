/** mcp-remote as its users run it: over stdio, for a client of the 2025 revisions and, message by message, for one with tasks. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { drive, driveTasks, token, url } from "./steps.mjs";

const args = ["node_modules/mcp-remote/dist/proxy.js", url, "--transport", "http-only", "--allow-http"];
if (token) args.push("--header", `Authorization:Bearer ${token}`);
const client = new Client({ name: "matrix", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: "node", args, env: process.env, stderr: "ignore" }));
await drive({
  list: async () => (await client.listTools()).tools.map(({ name }) => name),
  call: (name, args) => client.callTool({ name, arguments: args }),
});
await client.close();

const proxy = spawn("node", args, { stdio: ["pipe", "pipe", "ignore"] });
const waiting = new Map();
createInterface({ input: proxy.stdout }).on("line", (line) => {
  const { id, result, error } = JSON.parse(line);
  const { resolve, reject } = waiting.get(id) ?? {};
  if (error) reject?.(new Error(error.message));
  else resolve?.(result);
});
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "matrix", version: "1.0.0" },
  "io.modelcontextprotocol/clientCapabilities": {
    elicitation: {},
    extensions: { "io.modelcontextprotocol/tasks": {} },
  },
};
let last = 0;
await driveTasks(
  (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      proxy.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params: { ...params, _meta } })}\n`);
    }),
);
proxy.kill();
