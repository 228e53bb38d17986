/** Reads request bodies as JSON, within limits of size, time and depth. */

import { BODY_TIMEOUT_MS, exactJsonOf, isRecord, isTooDeep, MAX_DEPTH, readBytes } from "../../core/resonate/index.ts";
import { CLIENT_CAPABILITIES, CLIENT_INFO, LABELS_META, LOG_LEVEL } from "../../core/tools/index.ts";

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
  if (EMPTY_PATTERN.test(text)) leaveOutEmpty(parsed);
  return { parsed, weight: Math.ceil(text.length / CHARACTERS_PER_UNIT) };
}

/** What a text has that may have an empty member. */
const EMPTY_PATTERN = /null|\[\s*\]/;

/** The members of parameters that are nothing if they are empty: libraries write null for them, or an empty list for an object. */
const OPTIONAL_PARAMS = ["_meta", "arguments", "cursor", "inputResponses", "requestState", "context", "task"];
const OPTIONAL_META = ["progressToken", LOG_LEVEL, CLIENT_INFO, LABELS_META, "idempotencyKey"];

/** Removes empty optional members of the protocol from a message, as if its client had left them out. Data of users is unchanged. */
export function leaveOutEmpty(message: unknown): void {
  if (!isRecord(message)) return;
  remove(message, ["params"]);
  const { params, result } = message;
  if (isRecord(result)) remove(result, ["content", "_meta"]);
  if (!isRecord(params)) return;
  remove(params, OPTIONAL_PARAMS);
  const { _meta: meta, inputResponses } = params;
  if ("capabilities" in params) params.capabilities = declared(params.capabilities);
  if (isRecord(params.clientInfo)) removeAll(params.clientInfo);
  for (const response of isRecord(inputResponses) ? Object.values(inputResponses) : [])
    if (isRecord(response)) remove(response, ["content", "_meta"]);
  if (!isRecord(meta)) return;
  remove(meta, OPTIONAL_META);
  if (CLIENT_CAPABILITIES in meta) meta[CLIENT_CAPABILITIES] = declared(meta[CLIENT_CAPABILITIES]);
  if (isRecord(meta[CLIENT_INFO])) removeAll(meta[CLIENT_INFO]);
}

const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);

function remove(record: Record<string, unknown>, names: readonly string[]): void {
  for (const name of names) if (name in record && isEmpty(record[name])) delete record[name];
}

/** Removes the empty members of an object of the protocol, and of the objects in it. */
function removeAll(record: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(record)) {
    if (isEmpty(value)) delete record[name];
    else if (isRecord(value)) removeAll(value);
  }
}

/** The capabilities that a client declares, which must be an object. */
function declared(capabilities: unknown): unknown {
  if (isEmpty(capabilities)) return {};
  if (isRecord(capabilities)) removeAll(capabilities);
  return capabilities;
}

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
