/** Reads request bodies, within limits of size, time and depth. */
import { loadSdk } from "../http/load-sdk.ts";

/** The largest request body that is read, in bytes. */
export const MAX_BODY = 1_000_000;

/** How long a body may take to arrive, in milliseconds: on one machine, each slow one holds a connection. */
const READING = 30_000;

/** How deep a body may be nested: code that walks it recurses, and would overflow the stack. */
const MAX_DEPTH = 100;

export type Body =
  | { step: "parsed"; parsed: unknown }
  | { step: "sdk"; request: Request }
  | { step: "refused"; response: Response };

/** The media types that are accepted without asking the SDK. */
const JSON_TYPE = /^application\/json(; *charset=utf-8)?$/i;

/** The request's body as JSON, read once. The SDK refuses bodies that are not JSON. */
export async function readBody(request: Request): Promise<Body> {
  const { method, url, headers, signal } = request;
  const length = headers.get("content-length");
  const isJson = method === "POST" && (await isJsonType(headers.get("content-type")));
  if (!isJson) return { step: "sdk", request };
  const reading = length === null ? readUnmeasured(request) : Number(length) > MAX_BODY ? undefined : request.text();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Body>((resolve) => {
    timer = setTimeout(() => resolve({ step: "refused", response: tooSlow() }), READING);
  });
  const text = await Promise.race([reading, late]).finally(() => clearTimeout(timer));
  if (typeof text === "object") return text;
  if (text === undefined) {
    await drain(request);
    return { step: "refused", response: tooLarge() };
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { step: "sdk", request: new Request(url, { method, headers, body: text, signal }) };
  }
  if (!isTooDeep(text)) return { step: "parsed", parsed };
  return { step: "refused", response: invalidRequest(`it is nested more than ${MAX_DEPTH} levels deep`, parsed) };
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

/** Character codes of `"`, `\`, `[`, `{`, `]` and `}`. */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;
const CLOSE_LIST = 0x5d;
const CLOSE_OBJECT = 0x7d;

/** Whether JSON text is nested too deep, judged by its brackets. */
function isTooDeep(json: string): boolean {
  if (json.length < 2 * MAX_DEPTH) return false;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (quoted) {
      if (code === BACKSLASH) i += 1;
      else if (code === QUOTE) quoted = false;
    } else if (code === QUOTE) quoted = true;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
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
