import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, type WithTasksOptions } from "@modelcontextprotocol/ext-tasks/client";
import { REVISION, rpc } from "../support/rpc.ts";
import { CAPABILITIES } from "./support.ts";

/** A session of the extension's own client. Closing it closes the connection. */
export async function openSession(url: string, options: WithTasksOptions = {}) {
  const clientInfo = { name: "test", version: "1.0.0" };
  const client = new Client(clientInfo, { capabilities: CAPABILITIES, versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const session = createTaskSessionFromClient(client, {
    ...options,
    endpointId: "durable-mcp-edge",
    v2RequestFraming: { protocolVersion: REVISION, clientInfo, clientCapabilities: CAPABILITIES },
    async rawDispatch(request) {
      const { method, params } = request as { method: string; params: object };
      const { result, error } = await rpc(url, method, params, { capabilities: CAPABILITIES });
      return error ? { kind: "error", error: error as never } : { kind: "result", result };
    },
  });
  return {
    session,
    async [Symbol.asyncDispose]() {
      await session.close();
      await client.close();
    },
  };
}
