import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { proxy } from "hono/proxy";
import { CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION_META } from "../../core/tools/index.ts";

/** An MCP message from a host, and its answer. */
export interface Exchange {
  method: string;
  /** The tool, if the message is a call. */
  tool?: string;
  /** The client's name, capabilities and revision, from its handshake or this request. */
  client?: { name: string; capabilities: object; revision: string };
  /** The keys of the message's `_meta`. */
  meta?: string[];
  /** The size of the answer's result, in bytes. */
  bytes: number;
}

/** A proxy in front of the server that records the messages. */
export interface Wire extends AsyncDisposable {
  readonly url: string;
  readonly exchanges: readonly Exchange[];
  /** Forgets the recorded messages. If `marked`, the text of later answers with structured content is replaced by `TEXT`. */
  clear(marked?: boolean): void;
}

/** Replaces a text that repeats structured content. */
export const TEXT = "This is the text.";

export async function startWire(target: string): Promise<Wire> {
  let exchanges: Exchange[] = [];
  let marks = false;
  const app = new Hono();
  app.all("*", async (c) => {
    const { pathname, search } = new URL(c.req.url);
    const text = c.req.method === "POST" ? await c.req.text() : undefined;
    const exchange = text === undefined ? undefined : exchangeOf(text);
    if (exchange) exchanges.push(exchange);
    const { signal } = c.req.raw;
    const headers = { ...c.req.header(), host: new URL(target).host };
    const answer = await proxy(new URL(pathname + search, target), {
      method: c.req.method,
      headers,
      body: text ?? null,
      signal,
    });
    if (!exchange || !answer.body) return answer;
    if (marks && exchange.tool) {
      const headers = new Headers(answer.headers);
      headers.delete("content-length");
      return new Response((await answer.text()).replaceAll(/\{"(?:jsonrpc|result)".*\}/g, marked), { headers });
    }
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        exchange.bytes += chunk.byteLength;
        controller.enqueue(chunk);
      },
    });
    return new Response(answer.body.pipeThrough(counted), answer);
  });
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    get exchanges() {
      return exchanges;
    },
    clear(marked = false) {
      exchanges = [];
      marks = marked;
    },
    async [Symbol.asyncDispose]() {
      if ("closeAllConnections" in server) server.closeAllConnections();
      server.close();
    },
  };
}

/** The message with its text replaced by `TEXT`, if it has structured content. */
function marked(json: string): string {
  const message = JSON.parse(json);
  if (message.result?.structuredContent) message.result.content = [{ type: "text", text: TEXT }];
  return JSON.stringify(message);
}

function exchangeOf(text: string): Exchange | undefined {
  const { method, params = {} } = JSON.parse(text);
  if (typeof method !== "string") return undefined;
  const { name, _meta } = params;
  const about = _meta ?? {};
  const clientInfo = params.clientInfo ?? about[CLIENT_INFO];
  const capabilities = params.capabilities ?? about[CLIENT_CAPABILITIES];
  const revision = params.protocolVersion ?? about[PROTOCOL_VERSION_META];
  return {
    method,
    ...(name && { tool: name }),
    ...(clientInfo && { client: { name: clientInfo.name, capabilities, revision } }),
    ...(_meta && { meta: Object.keys(_meta) }),
    bytes: 0,
  };
}
