/** LangChain's adapters, which validate arguments before they send them. */
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { drive, headers, url } from "../steps.mjs";

const client = new MultiServerMCPClient({ mcpServers: { s: { transport: "http", url, headers } } });
const tools = new Map((await client.getTools()).map((tool) => [tool.name, tool]));
await drive({ list: async () => [...tools.keys()], call: (name, args) => tools.get(name).invoke(args) });
await client.close();
