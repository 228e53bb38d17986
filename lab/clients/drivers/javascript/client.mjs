/** `@modelcontextprotocol/client`, and the Tasks extension's own client over it. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { drive, headers, step, url } from "./steps.mjs";

const clientInfo = { name: "matrix", version: "1.0.0" };
const capabilities = { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };
const connect = async (capabilities) => {
  const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
};

const client = await connect({});
await drive({
  list: async () => (await client.listTools()).tools.map(({ name }) => name),
  call: (name, args) => client.callTool({ name, arguments: args }),
});
await client.close();

const PROTOCOL = "2026-07-28";
const tasking = await connect(capabilities);
const session = createTaskSessionFromClient(tasking, {
  endpointId: "durable-mcp-edge",
  v2RequestFraming: { protocolVersion: PROTOCOL, clientInfo, clientCapabilities: capabilities },
  onInputRequest: async () => ({ action: "accept", content: { confirm: true } }),
  async rawDispatch({ method, params }) {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": PROTOCOL,
        "mcp-method": method,
        // The session leaves headers to its transport, which only has to add the tool's name.
        ...(params.name !== undefined && { "mcp-name": params.name }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result, error } = await response.json();
    return error ? { kind: "error", error } : { kind: "result", result };
  },
});
const place = { latitude: 47.5 + (Number.parseInt(process.env.RUN, 36) % 2_000) / 10_000, longitude: -122.35 };
await step("task: answered", async () => {
  const execution = await session.callTool("weather_range", { ...place, from: "2012-01", to: "2014-01" });
  const { outcome } = await execution.settle();
  return outcome.result?.structuredContent?.status === "complete" || outcome;
});
await step("task: cancelled", async () => {
  const execution = await session.callTool("timer", { timer_name: `x${process.env.RUN}`, seconds: 3_600 });
  await execution.cancel();
  return (await execution.settle()).outcome.status === "cancelled";
});
await session.close();
await tasking.close();
