/** Google's SDK, which turns an MCP client into a tool for Gemini. */
import { mcpToTool } from "@google/genai";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { drive, headers, step, TOOLS, url } from "../steps.mjs";
import { byGemini, generally } from "../vendors.ts";

const client = new Client({ name: "matrix", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const tool = mcpToTool(client);
await drive({
  list: async () => (await tool.tool()).functionDeclarations.map(({ name }) => name),
  async call(name, args) {
    const [part] = await tool.callTool([{ name, args }]);
    const { response } = part.functionResponse;
    return response.error ?? response;
  },
});
await step("converted for Google", async () => {
  const { functionDeclarations } = await tool.tool();
  const refused = functionDeclarations.flatMap((one) => {
    const tool = { ...one, schema: one.parametersJsonSchema ?? one.parameters };
    return [...generally(tool), ...byGemini(tool)];
  });
  return (functionDeclarations.length === TOOLS.length && refused.length === 0) || refused;
});
await client.close();
