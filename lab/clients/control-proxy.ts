/** A proxy that adds control tools to a deployment's own. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { bearer } from "../../test/auth/support.ts";
import { type HttpServer, serveHttp } from "../../testing/stack/http-server.ts";
import type { ControlledEdge } from "./controlled-edge.ts";
import { type Control, type Controls, TOKENS } from "./controls.ts";

/** The beginning of the names of control tools. */
const PREFIX = "events_conformance_";

/** Serves the edge together with the controls. Requests belong to the suite's caller. */
export const serveControls = (edge: ControlledEdge, controls: Controls): Promise<HttpServer> =>
  serveHttp(
    (request, response) => void handle(edge, controls, request, response).catch(() => request.socket.destroy()),
  );

async function handle(edge: ControlledEdge, controls: Controls, request: IncomingMessage, response: ServerResponse) {
  const body = await text(request);
  const { id, method, params } = body ? JSON.parse(body) : {};
  const answer = (result: object) =>
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", ...result } }));
  const control = method === "tools/call" && controls[withoutPrefix(String(params.name))];
  if (control) return answer(await toolResult(control, params.arguments ?? {}));
  const upstream = await forward(edge, request, response, body);
  if (method === "tools/list") {
    const { result } = (await upstream.json()) as { result: { tools: object[] } };
    const inputSchema = { type: "object" };
    const controlTools = Object.keys(controls).map((name) => ({ name: `${PREFIX}${name}`, inputSchema }));
    return answer({ ...result, tools: [...result.tools, ...controlTools] });
  }
  const type = upstream.headers.get("content-type") ?? "application/json";
  response.writeHead(upstream.status, { "content-type": type }).flushHeaders();
  for await (const chunk of upstream.body ?? []) response.write(chunk);
  response.end();
}

const withoutPrefix = (name: string) => (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name);

/** Runs a control. An error becomes the result of a tool that fails. */
async function toolResult(control: Control, args: Record<string, string>): Promise<object> {
  try {
    return { content: [{ type: "text", text: await control(args) }] };
  } catch (error) {
    return { isError: true, content: [{ type: "text", text: (error as Error).message }] };
  }
}

/** Makes a request at the edge as the suite's caller, until the client closes its connection. */
function forward(edge: ControlledEdge, request: IncomingMessage, response: ServerResponse, body: string) {
  const closed = new AbortController();
  response.on("close", () => closed.abort());
  const { host: _, connection: _c, "content-length": _l, ...headers } = request.headers;
  return fetch(edge.url + request.url, {
    method: request.method ?? "POST",
    headers: { ...(headers as object), ...bearer(TOKENS.suite) },
    body,
    signal: closed.signal,
  });
}
