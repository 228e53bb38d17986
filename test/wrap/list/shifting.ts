/**
 * A server over stdio whose tools are the JSON in the file `TOOLS`, read for each list. A call of `shift` tells its client that
 * the list has changed; every other call is answered with the tool's name.
 */
import { readFileSync } from "node:fs";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const capabilities = { tools: { listChanged: true } };
const server = new Server({ name: "shifting", version: "1.0.0" }, { capabilities });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: JSON.parse(readFileSync(`${process.env.TOOLS}`, "utf8")),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params: { name } }) => {
  if (name === "shift") await server.sendToolListChanged();
  return { content: [{ type: "text", text: name }] };
});
await server.connect(new StdioServerTransport());
