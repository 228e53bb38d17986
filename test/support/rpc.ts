/** Raw messages of the 2026-07-28 revision of MCP, for requests that no client library sends. */

export const REVISION = "2026-07-28";

/** The Tasks extension, as a client declares it in each request. */
export const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };

export interface RpcAnswer {
  status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
  result?: any;
  error?: { code: number; message: string; data?: unknown };
}

export interface RpcOptions {
  /** The client's capabilities. Default: those of a client that understands tasks. */
  capabilities?: object;
  /** A Bearer token, for a server that demands one. */
  token?: string | undefined;
  signal?: AbortSignal;
}

/** Sends one request with its routing headers and returns the answer, streamed or not. */
export async function rpc(url: string, method: string, params: object = {}, options: RpcOptions = {}) {
  const { capabilities = TASKS, token, signal } = options;
  const response = await fetch(url, {
    method: "POST",
    headers: { ...rpcHeaders(method, params), ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(rpcMessage(method, params, capabilities)),
    ...(signal && { signal }),
  });
  return readAnswer(response);
}

/** The body of a request. */
export function rpcMessage(method: string, params: object = {}, capabilities: object = TASKS) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  return { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } };
}

interface Named {
  name?: unknown;
  taskId?: unknown;
  uri?: unknown;
}

/** The headers of a request. Two of them repeat the method and the name in the body; a name unfit for a header is left out. */
export function rpcHeaders(method: string, params: Named = {}): Record<string, string> {
  const name = params.name ?? params.taskId ?? params.uri;
  return {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": REVISION,
    "mcp-method": method,
    ...(typeof name === "string" && /^[\x21-\x7e]*$/.test(name) && { "mcp-name": name }),
  };
}

/** The answer in a response, which is the last message of a stream. @throws {Error} when there is none */
async function readAnswer(response: Response): Promise<RpcAnswer> {
  const body = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  const messages = isStream
    ? body.split("\n").flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6))] : []))
    : [JSON.parse(body)];
  const answer = messages.find((message) => "result" in message || "error" in message);
  if (!answer) throw new Error(`no answer in: ${body.slice(0, 500)}`);
  return { status: response.status, result: answer.result, error: answer.error };
}
