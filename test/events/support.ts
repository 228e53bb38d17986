import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import * as z from "zod";
import { rpcHeaders, rpcMessage } from "../support/rpc.ts";

/** An event as a caller gets it. */
export interface Told {
  eventId: string;
  name: string;
  timestamp: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the shape of its content
  data: any;
  cursor?: string;
}

export interface Polled {
  events: Told[];
  cursor: string;
  truncated: boolean;
  hasMore: boolean;
  nextPollMs: number;
}

/** The current client, with the methods of the Events extension. */
export async function eventsAt(url: string, token?: string) {
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const request = (method: string, params: object = {}) =>
    client.request({ method, params } as never, z.looseObject({}) as never) as Promise<unknown>;
  return {
    client,
    list: () => request("events/list") as Promise<{ events: { name: string; delivery: string[] }[] }>,
    poll: (params: object) => request("events/poll", params) as Promise<Polled>,
    /** Polls until there are `count` events, or for 30 s. */
    async collect(cursor: string | null, count: number, params: object = { name: "job.ended" }) {
      const events: Told[] = [];
      let at = cursor;
      for (const end = Date.now() + 30_000; events.length < count && Date.now() < end;) {
        const page = (await request("events/poll", { ...params, cursor: at })) as Polled;
        events.push(...page.events);
        at = page.cursor;
        if (page.events.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return { events, cursor: at };
    },
    start: (name: string, args: object) => client.callTool({ name, arguments: args as never }),
    request,
    [Symbol.asyncDispose]: () => client.close(),
  };
}

export interface Notified {
  method?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  params?: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  result?: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  error?: any;
}

/** Opens a stream of events, and yields its messages. @throws {Error} for an SSE comment, which the extension forbids */
export async function* streamAt(
  url: string,
  params: object,
  signal: AbortSignal,
  token?: string,
): AsyncGenerator<Notified> {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...rpcHeaders("events/stream"), ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(rpcMessage("events/stream", params, {})),
    signal,
  });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
    return void (yield (await response.json()) as Notified);
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
      if (/^:/m.test(text.slice(0, end))) throw new Error(`a comment: ${text.slice(0, end)}`);
      text = text.slice(end + 2);
      if (data) yield JSON.parse(data) as Notified;
    }
  }
}
