/** Reads request bodies as JSON, within limits of size, time and depth. */

import { BODY_TIMEOUT_MS, exactJsonOf, isTooDeep, MAX_DEPTH, readBytes } from "../../core/resonate/index.ts";

/** The largest request body that is read, in bytes. */
export const MAX_BODY = 1_000_000;

/** How many characters of a body cost as much as one request: they are read, checked, and may be stored. */
const CHARACTERS_PER_UNIT = 20_000;

/** The longest texts that answers repeat: the id of a request, its method, the token of its progress; in characters. */
const MAX_ECHOED_CHARACTERS = 1_000;

/** The parsed body and what its size alone costs, the response that refuses it, or the request for the SDK to refuse. */
type Body = { parsed: unknown; weight: number } | Response | Request;

/** The media types that are accepted without asking the SDK. */
const JSON_TYPE = /^application\/json(; *charset=utf-8)?$/i;

/** Reads a request's body once, as JSON. */
export async function readBody(request: Request): Promise<Body> {
  const { method, url, headers, signal } = request;
  const type = headers.get("content-type");
  const isJson = JSON_TYPE.test(type ?? "") || (await import("../sdk.ts")).isJsonContentType(type);
  if (method !== "POST" || !isJson) return request;
  const body = await readBytes(request, MAX_BODY);
  if (body === 413) return refusal(413, `Payload Too Large: Request body must not exceed ${MAX_BODY} bytes`);
  if (body === 408)
    return refusal(408, `Request Timeout: the body must come within ${BODY_TIMEOUT_MS / 1_000} seconds`);
  const text = new TextDecoder().decode(body);
  const parsed = exactJsonOf(text);
  if (parsed === undefined) return new Request(url, { method, headers, body: text, signal });
  if (Array.isArray(parsed)) return invalidRequest("the body is a list. Requests are sent one at a time");
  if (isTooDeep(text)) return invalidRequest(`it is nested more than ${MAX_DEPTH} levels deep`, parsed);
  const long = longEcho(parsed);
  if (long) return invalidRequest(`${long} has more than ${MAX_ECHOED_CHARACTERS} characters`, parsed);
  if (EMPTY_PATTERN.test(text)) (await import("./empty-members.ts")).leaveOutEmpty(parsed);
  return { parsed, weight: Math.ceil(text.length / CHARACTERS_PER_UNIT) };
}

/** What a text has that may have an empty member. */
const EMPTY_PATTERN = /null|\[\s*\]/;

/** The name of a text that answers would repeat, and that is too long for that. */
function longEcho(message: unknown): string | undefined {
  const { id, method, params } = Object(message);
  const { progressToken } = Object(Object(params)._meta);
  const echoed = { "its id": id, "its method": method, "its progressToken": progressToken };
  return Object.entries(echoed).find(([, text]) => isLong(text))?.[0];
}

const isLong = (text: unknown): boolean => typeof text === "string" && text.length > MAX_ECHOED_CHARACTERS;

/** The response to a body that is not acceptable as JSON-RPC, with the id of its message where it has one. */
export function invalidRequest(reason: string, parsed?: unknown): Response {
  const { id } = Object(parsed);
  const error = { code: -32600, message: `Invalid Request: ${reason}` };
  const isRepeated = typeof id === "number" || (typeof id === "string" && !isLong(id));
  return Response.json({ jsonrpc: "2.0", error, id: isRepeated ? id : null }, { status: 400 });
}

/** The response that the SDK would give, without loading it. */
export function notAllowed(): Response {
  const response = refusal(405, "Method not allowed.");
  response.headers.set("allow", "POST");
  return response;
}

function refusal(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status });
}
