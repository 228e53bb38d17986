/** Mastra, which converts the schemas and validates arguments with the result. */
import { MCPClient } from "@mastra/mcp";
import { drive, headers, url } from "../steps.mjs";

const client = new MCPClient({ servers: { s: { url: new URL(url), requestInit: { headers } } } });
const tools = await (client.listTools ?? client.getTools).call(client);
await drive({
  list: async () => Object.keys(tools).map((name) => name.replace(/^s_/, "")),
  call: async (name, args) => {
    const tool = tools[`s_${name}`];
    const result = await tool.execute(args, {});
    if (result?.error) throw new Error(result.message ?? JSON.stringify(result));
    return result;
  },
});
await client.disconnect();
process.exit(0);
