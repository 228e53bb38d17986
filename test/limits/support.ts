/** Raw requests, as no MCP client sends them. */
import { request } from "node:http";

export const JSON_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

export interface RawAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The JSON-RPC messages of the answer, whether its body is one message or an event stream. */
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the shape of its answer
  messages: any[];
}

/** Sends a request with any headers; `fetch` forbids some, such as `host`. */
export function send(
  url: string,
  { method = "POST", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
): Promise<RawAnswer> {
  const sent = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const req = request(url, { method, headers: { ...(sent !== undefined && JSON_HEADERS), ...headers } }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      res.on("end", () =>
        resolve({ status: res.statusCode ?? 0, headers: res.headers, text, messages: messagesIn(text) }),
      );
      res.on("error", reject);
    });
    req.on("error", reject).end(sent);
  });
}

function messagesIn(text: string): unknown[] {
  const lines = text.split("\n").filter((line) => line.startsWith("data: "));
  const parts = lines.length > 0 ? lines.map((line) => line.slice("data: ".length)) : [text];
  return parts.flatMap((part) => {
    try {
      return [JSON.parse(part)];
    } catch {
      return [];
    }
  });
}

let ids = 0;

/** The message of a tool call as a client of 2025 sends it. */
export const call = (name: unknown, args: unknown = {}, id: unknown = ++ids) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

/** `count` job names of timers that nobody has set. */
export const names = (count: number, prefix = "none") => Array.from({ length: count }, (_, i) => `timer_${prefix}${i}`);
