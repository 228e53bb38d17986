import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as Client2025 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport2025 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

/**
 * A connected MCP client of either era. The client itself checks results against the tools' output schemas. In addition, this
 * wrapper checks that the text of a result equals its structured content.
 */
export interface McpClient extends AsyncDisposable {
  /** The revision that the client and the server agreed on. */
  readonly revision: string | undefined;
  readonly serverInfo: { name: string; title?: string | undefined; version: string } | undefined;
  readonly instructions: string | undefined;
  listTools(): Promise<ListedTool[]>;
  callTool(name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  close(): Promise<void>;
}

export interface ListedTool {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: object;
  outputSchema?: object | undefined;
  annotations?: object | undefined;
}

export interface CallOptions {
  onprogress?: (progress: { progress: number; total?: number | undefined; message?: string | undefined }) => void;
  /** Aborts the call, which the client tells the server by closing the connection or by a notification. */
  signal?: AbortSignal;
  /** The time after which the client gives up, in milliseconds. */
  timeout?: number;
}

export interface ToolResult {
  isError: boolean;
  /** The text of the content, for a model. */
  text: string;
  /** The structured content; empty when there is none. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
  content: any;
}

/** A way to be a client of the server: the current client, and one from before the 2026-07-28 revision. */
export interface ClientKind {
  kind: string;
  connect(url: string): Promise<McpClient>;
}

const IDENTITY = { name: "test", version: "1.0.0" };

export const currentClient: ClientKind = {
  kind: "the current client",
  async connect(url) {
    const client = new Client(IDENTITY, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return wrap(client, () => client.getNegotiatedProtocolVersion());
  },
};

export const client2025: ClientKind = {
  kind: "the 2025-era client",
  async connect(url) {
    const client = new Client2025(IDENTITY);
    const transport = new Transport2025(new URL(url));
    await client.connect(transport as never);
    return wrap(client, () => transport.protocolVersion);
  },
};

export const CLIENTS: readonly ClientKind[] = [currentClient, client2025];

/** The time after which a client gives up a call, in milliseconds. It is longer than any call of a test waits. */
const CALL_TIMEOUT_MS = 150_000;

async function wrap(client: Client | Client2025, revision: () => string | undefined): Promise<McpClient> {
  // The clients share these methods. Their types differ only in parts that no test uses.
  const { listTools, callTool } = client as unknown as {
    listTools(): Promise<{ tools: ListedTool[] }>;
    callTool(params: object, ...options: unknown[]): Promise<RawResult>;
  };
  const list = async () => (await listTools.call(client)).tools;
  await list(); // from now on the client checks results against the output schemas
  return {
    revision: revision(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
    listTools: list,
    async callTool(name, args = {}, options = {}) {
      const call = { timeout: CALL_TIMEOUT_MS, ...options };
      const params = { name, arguments: args };
      const result = await (client instanceof Client
        ? callTool.call(client, params, call)
        : callTool.call(client, params, undefined, call));
      const text = result.content.map(({ text }) => text).join("\n");
      const { structuredContent: content } = result;
      // Further texts after the first one are additional messages to the model.
      const [first] = result.content;
      if (content && first?.text !== JSON.stringify(content)) {
        throw new Error(`text and structured content differ: ${text}`);
      }
      return { isError: result.isError === true, text, content: content ?? {} };
    },
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

interface RawResult {
  isError?: boolean;
  content: { text?: string }[];
  structuredContent?: object;
}
