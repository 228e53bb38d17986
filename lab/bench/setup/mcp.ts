/** MCP requests in the form of clients of both revisions. */
import { EventSourceParserStream } from "eventsource-parser/stream";

export const MODERN = "2026-07-28";
export const LEGACY = "2025-11-25";
export type Revision = typeof MODERN | typeof LEGACY;

export interface Message {
  method: string;
  params?: Record<string, unknown>;
  /** Declares that the client understands tasks. */
  tasks?: boolean;
}

export interface HttpRequest {
  headers: Record<string, string>;
  body: string;
}

/** A JSON-RPC message from the server. */
export interface Answer {
  id?: number;
  method?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape depends on the request
  params?: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  result?: any;
  error?: { message: string };
}

const CLIENT = { name: "bench", version: "1.0.0" };
const TASKS = "io.modelcontextprotocol/tasks";

export function mcpRequest(revision: Revision, { method, params = {}, tasks = false }: Message): HttpRequest {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": revision,
  };
  const message = { jsonrpc: "2.0", id: 1, method };
  if (revision === LEGACY) return { headers, body: JSON.stringify({ ...message, params }) };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": tasks ? { extensions: { [TASKS]: {} } } : {},
  };
  const name = params.name ?? params.taskId;
  return {
    headers: { ...headers, "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) },
    body: JSON.stringify({ ...message, params: { ...params, _meta } }),
  };
}

/**
 * The body of the `n`th request, where `n` has nine digits. Replaces `{n}` by that number, and `{a}` and `{b}` by two numbers
 * with four decimals whose combination is unique to the request.
 */
export function numbered(body: string, n: number): string {
  const digits = String(n);
  const [a, b] = [`${digits.slice(0, 1)}.${digits.slice(1, 5)}`, `47.${digits.slice(5)}`];
  return body.replaceAll("{n}", digits).replaceAll("{a}", a).replaceAll("{b}", b);
}

/** Whether a body has placeholders for {@link numbered}. */
export const isNumbered = (body: string): boolean => /\{[nab]\}/.test(body);

/** Yields the messages of an answer as they arrive: one for JSON, any number for an event stream. */
export async function* messages(
  url: string,
  { headers, body }: HttpRequest,
  signal?: AbortSignal,
): AsyncGenerator<Answer> {
  const response = await fetch(url, { method: "POST", headers, body, ...(signal && { signal }) });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || !response.body) {
    yield JSON.parse(await response.text());
    return;
  }
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) yield JSON.parse(data);
}

/** Sends a request with additional headers. @throws {Error} for an error result */
export async function ask(
  url: string,
  message: Message,
  revision: Revision = MODERN,
  headers: Record<string, string> = {},
): Promise<Answer["result"]> {
  const request = mcpRequest(revision, message);
  for await (const answer of messages(url, { ...request, headers: { ...request.headers, ...headers } })) {
    if (answer.id === undefined) continue;
    if (answer.error) throw new Error(`${message.method}: ${answer.error.message}`);
    if (answer.result.isError) throw new Error(`${message.method}: ${answer.result.content[0].text}`);
    return answer.result;
  }
  throw new Error(`${message.method} was not answered`);
}

export const toolCall = (name: string, args: object, options: { tasks?: boolean } = {}): Message => ({
  method: "tools/call",
  params: { name, arguments: args },
  ...options,
});

/** Calls a tool; returns its structured content. @throws {Error} for an error result */
export async function callTool(url: string, name: string, args: object) {
  return (await ask(url, toolCall(name, args))).structuredContent;
}
