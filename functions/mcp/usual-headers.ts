import { EventSourceParserStream } from "eventsource-parser/stream";
import { isStream } from "../http/event-stream.ts";
import { ACCEPT_PATTERN } from "./message.ts";

/** Headers of the protocol that proxies send twice. */
const REPEATED_HEADERS = ["mcp-protocol-version", "mcp-method", "mcp-session-id"];

/** The types of answers. */
const ACCEPT = "application/json, text/event-stream";

const JSON_TYPES = ["application/json", "application/*", "*/*"];
const STREAM_TYPES = ["text/event-stream", "text/*", "*/*"];

/** Notifications that a client without streams does without. */
const SKIPPED_NOTIFICATIONS = ["notifications/progress", "notifications/message"];

/** Which types of answers a client reads. Without an `Accept` it reads both. */
function acceptedTypes(headers: Headers): { json: boolean; stream: boolean } {
  const types = (headers.get("accept") ?? "*/*")
    .split(",")
    .map((type) => type.replace(/;.*/s, "").trim().toLowerCase());
  return {
    json: types.some((type) => JSON_TYPES.includes(type)),
    stream: types.some((type) => STREAM_TYPES.includes(type)),
  };
}

/**
 * The headers in the form that the protocol asks for, if they are in another that says the same: an `Accept` with one of the types,
 * with a range or in capitals, or none, and headers that are sent twice. Headers that say something else are unchanged.
 */
export function usualHeaders(headers: Headers): Headers {
  const usual = new Headers(headers);
  const { json, stream } = acceptedTypes(headers);
  if ((json || stream) && !ACCEPT_PATTERN.test(headers.get("accept") ?? "")) usual.set("accept", ACCEPT);
  for (const name of REPEATED_HEADERS) {
    const [first = "", ...others] = headers.get(name)?.split(/, */) ?? [];
    if (others.length > 0 && others.every((other) => other === first)) usual.set(name, first);
  }
  return usual;
}

/** The response in a type that its client reads: one of a call is the same as JSON or as a stream. */
export async function inAcceptedType(response: Response, headers: Headers): Promise<Response> {
  const { json, stream } = acceptedTypes(headers);
  if (json && !stream && isStream(response)) return asJson(response);
  const isMessage = response.ok && response.headers.get("content-type")?.startsWith("application/json");
  return stream && !json && isMessage ? asStream(response) : response;
}

async function asJson(response: Response): Promise<Response> {
  const events = (response.body as ReadableStream<BufferSource>)
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "") continue;
    const { method } = JSON.parse(data) as { method?: string };
    if (method === undefined) return withType(response, "application/json", data);
    // Without a stream there is no place for a question, or for what a subscription tells.
    if (!SKIPPED_NOTIFICATIONS.includes(method)) break;
  }
  const message = "Not Acceptable: this request is answered with a stream. Accept text/event-stream as well";
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status: 406 });
}

const asStream = async (response: Response): Promise<Response> =>
  withType(response, "text/event-stream", `event: message\ndata: ${JSON.stringify(await response.json())}\n\n`);

function withType({ status, headers }: Response, type: string, body: string): Response {
  const typed = new Headers(headers);
  typed.set("content-type", type);
  return new Response(body, { status, headers: typed });
}
