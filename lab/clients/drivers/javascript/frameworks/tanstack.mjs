/** TanStack AI's host. Its version 0.2 has no events. */
import { createMCPClient } from "@tanstack/ai-mcp";
import { drive, headers, url } from "../steps.mjs";

const client = await createMCPClient({ transport: { type: "http", url, headers } });
const tools = await client.tools();
await drive({
  list: async () => tools.map(({ name }) => name),
  call: (name, args) => client.callTool(name, args),
});
await client.close();
