/** mcp-use, whose first major version is a client. */
process.env.MCP_USE_ANONYMIZED_TELEMETRY = "false"; // it would wait for a server of its vendor
const { MCPClient } = await import("mcp-use");

import { drive, headers, url } from "../steps.mjs";

const client = new MCPClient({ mcpServers: { s: { url, headers } } });
const session = await client.createSession("s");
await drive({
  list: async () => (await session.listTools()).map(({ name }) => name),
  call: (name, args) => session.callTool(name, args),
});
await client.closeAllSessions();
process.exit(0);
