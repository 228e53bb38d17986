/** OpenAI's agents, and their conversion to strict schemas. */
import { getAllMcpTools, MCPServerStreamableHttp, RunContext } from "@openai/agents";
import { drive, headers, step, TOOLS, url } from "../steps.mjs";
import { strictly } from "../vendors.ts";

const server = new MCPServerStreamableHttp({ url, name: "s", requestInit: { headers } });
await server.connect();
await drive({
  list: async () => (await server.listTools()).map(({ name }) => name),
  call: (name, args) => server.callTool(name, args),
});
await step("converted to strict schemas", async () => {
  const runContext = new RunContext({});
  const options = { mcpServers: [server], convertSchemasToStrict: true, runContext, agent: { name: "a" } };
  const tools = await getAllMcpTools(options);
  // Schemas that cannot be converted stay unchanged, with only a log line.
  const loose = tools.filter(({ strict }) => !strict).map(({ name }) => `${name} is not strict`);
  const refused = tools.flatMap(({ name, parameters }) => strictly({ name, schema: parameters }));
  return (tools.length === TOOLS.length && [...loose, ...refused].length === 0) || [tools.length, ...loose, ...refused];
});
await server.close();
process.exit(0);
