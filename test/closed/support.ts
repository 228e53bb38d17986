/** Requests as no client sends them. */
import { request } from "node:http";

export const JSON_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

export interface RawAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The JSON-RPC messages of the answer, which is JSON, a list or a stream. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they know it to be
  messages: any[];
}

/** Sends a request with any headers; `fetch` lets a caller choose only some. */
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
      return [JSON.parse(part)].flat();
    } catch {
      return [];
    }
  });
}

let ids = 0;

/** A call of a tool as a client of 2025 makes it. */
export const call = (name: unknown, args: unknown = {}, id: unknown = ++ids) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

/** So many names of timers that nobody has set. */
export const names = (count: number, prefix = "none") => Array.from({ length: count }, (_, i) => `timer_${prefix}${i}`);
