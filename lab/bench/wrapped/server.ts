/**
 * A server with two tools that answer at once, over HTTP at `PORT` or over stdio. With `BEHIND`, the URL or the command of
 * another server, it is a bare proxy of that server, made only of the SDK's client and server.
 */
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const { PORT, BEHIND } = process.env;

const inputSchema = { type: "object" as const };
const TOOLS = [
  { name: "read", inputSchema, annotations: { readOnlyHint: true } },
  { name: "write", inputSchema },
];

const behind = BEHIND === undefined ? undefined : await connected(BEHIND);

function makeServer(): Server {
  const server = new Server({ name: "bench", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS }));
  server.setRequestHandler("tools/call", ({ params: { name, arguments: args = {} } }) =>
    behind ? behind.callTool({ name, arguments: args }) : { content: [{ type: "text", text: `${name} is done` }] },
  );
  return server;
}

async function connected(target: string): Promise<Client> {
  const client = new Client({ name: "proxy", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const [command = "", ...args] = target.split(" ");
  const isUrl = target.startsWith("http");
  await client.connect(
    isUrl ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command, args }),
  );
  return client;
}

if (PORT === undefined) serveStdio(makeServer);
else {
  const handler = createMcpHandler(makeServer);
  createServer(getRequestListener((request) => handler.fetch(request))).listen(Number(PORT), "127.0.0.1", () =>
    console.log("listening"),
  );
}
