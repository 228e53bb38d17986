/** Reads request bodies, within limits of size, time and depth. */
import { loadSdk } from "../http/load-sdk.ts";

/** The largest request body that is read, in bytes. */
export const MAX_BODY = 1_000_000;

/** How long a body may take to arrive, in milliseconds: on one machine, each slow one holds a connection. */
const READING = 30_000;

/** How deep a body may be nested: code that walks it recurses, and would overflow the stack. */
const MAX_DEPTH = 100;

/** The parsed body, the response that refuses it, or the request for the SDK to refuse. */
export type Body = { parsed: unknown; size: number } | Response | Request;

/** The media types that are accepted without asking the SDK. */
const JSON_TYPE = /^application\/json(; *charset=utf-8)?$/i;

/** Reads a request's body once, as JSON. */
export async function readBody(request: Request): Promise<Body> {
  const { method, url, headers, signal } = request;
  const length = headers.get("content-length");
  if (method !== "POST" || !(await isJsonType(headers.get("content-type")))) return request;
  const reading = length === null ? readUnmeasured(request) : Number(length) > MAX_BODY ? undefined : request.text();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Response>((resolve) => {
    timer = setTimeout(() => resolve(tooSlow()), READING);
  });
  const text = await Promise.race([reading, late]).finally(() => clearTimeout(timer));
  if (text instanceof Response) return text;
  if (text === undefined) {
    await drain(request);
    return tooLarge();
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return new Request(url, { method, headers, body: text, signal });
  }
  return isTooDeep(text)
    ? invalidRequest(`it is nested more than ${MAX_DEPTH} levels deep`, parsed)
    : { parsed, size: text.length };
}

/** The response to a body that is not acceptable as JSON-RPC, with the id of its message where it has one. */
export function invalidRequest(reason: string, parsed?: unknown): Response {
  const id = typeof parsed === "object" && parsed !== null && "id" in parsed ? parsed.id : undefined;
  const error = { code: -32600, message: `Invalid Request: ${reason}` };
  return Response.json(
    { jsonrpc: "2.0", error, id: typeof id === "string" || typeof id === "number" ? id : null },
    { status: 400 },
  );
}

/** Whether JSON text is nested too deep, judged by its brackets. */
function isTooDeep(json: string): boolean {
  if (json.length < 2 * MAX_DEPTH) return false;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < json.length; i++) {
    switch (json.charCodeAt(i)) {
      case 0x5c: // \, which occurs in strings alone
        i += 1;
        break;
      case 0x22: // "
        quoted = !quoted;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (!quoted) depth += 1;
        if (depth > MAX_DEPTH) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (!quoted) depth -= 1;
    }
  }
  return false;
}

async function isJsonType(type: string | null): Promise<boolean> {
  if (type !== null && JSON_TYPE.test(type)) return true;
  const { isJsonContentType } = await loadSdk();
  return isJsonContentType(type);
}

/** The text of a body of undeclared length; undefined if it is too large. */
async function readUnmeasured({ body }: Request): Promise<string | undefined> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let text = "";
  try {
    for (let size = 0; reader; ) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.byteLength;
      if (size > MAX_BODY) return undefined;
      text += decoder.decode(value, { stream: true });
    }
    return text + decoder.decode();
  } finally {
    reader?.releaseLock();
  }
}

/** How much of a refused body is read, in bytes, and for how long, in milliseconds. */
const DRAIN = 10 * MAX_BODY;
const DRAIN_TIME = 5_000;

/** Drains a refused body: a client whose connection ends while it still sends may never read the response. */
async function drain({ body }: Request): Promise<void> {
  const reader = body?.getReader();
  if (!reader) return;
  const limit = setTimeout(() => void reader.cancel().catch(() => {}), DRAIN_TIME);
  try {
    for (let left = DRAIN; left > 0; ) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The client has gone.
  } finally {
    clearTimeout(limit);
  }
}

/** The response that the SDK would give, without loading it. */
export function notAllowed(): Response {
  const response = refusal(405, "Method not allowed.");
  response.headers.set("allow", "POST");
  return response;
}

const tooLarge = () => refusal(413, `Payload Too Large: Request body must not exceed ${MAX_BODY} bytes`);
const tooSlow = () => refusal(408, `Request Timeout: the body must come within ${READING / 1_000} seconds`);

function refusal(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status });
}
