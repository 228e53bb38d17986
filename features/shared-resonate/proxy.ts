/**
 * Passes requests on to the Resonate object. The route is public, and all callers share the object, so only requests of workers
 * and operators reach it, judged by path, method, size and token. The object checks all of this again.
 */
import * as z from "zod";
import { keysOf } from "../../core/author/index.ts";
import { fetchFrom, jsonOf, NDJSON, type ResonateNamespace, readBytes } from "../../core/resonate/index.ts";
import { bearerIn, holderOfToken, tokensIn } from "../../functions/auth/secret.ts";
import type { RefusedTries } from "../../functions/http/refused-tries.ts";

/** The largest request, in bytes: the same as in the object, and a larger one for rows that an operator restores. */
const MAX_REQUEST_BYTES = 2 * 1024 * 1024;
const MAX_ROWS_BYTES = 32 * 1024 * 1024;

/** How many characters of an id the audit log keeps. */
const MAX_ID_CHARACTERS = 1_000;

const OPERATE_PATH = "/operate/";
const CALLERS = `${OPERATE_PATH}callers`;

/** The commands in the audit log, by a request that each of them makes. They read, replace or remove what the server keeps. */
const AUDITED_COMMANDS: Readonly<Record<string, string>> = {
  "GET rows": "backup",
  "GET callers": "backup",
  "POST bucket": "backup",
  "GET bucket": "restore",
  "POST rows": "restore",
  "POST callers": "restore",
  "POST key": "restore",
  "POST caller": "forget",
  "DELETE callers": "forget",
  "POST recover": "recover",
};

/** Who may reach the Resonate object, each as a JSON list of tokens' hashes. */
interface Tokens {
  OPERATOR_TOKENS?: string;
  /** Of workers elsewhere. */
  RESONATE_TOKENS?: string;
}

export interface ProxyOptions {
  tokens: Tokens;
  tries: RefusedTries;
  /** Notes that an operator gives a command; undefined in a deployment that keeps no audit log. */
  note: ((who: string, command: string, details: object) => Promise<unknown>) | undefined;
}

/** The rows of the callers' objects. */
export interface CallerRows {
  read(after: never): Promise<object>;
  write(rows: never): Promise<void>;
  forget(key: string): Promise<void>;
}

/** Passes requests of workers elsewhere and of operators on to the Resonate object. */
export async function passOn(request: Request, resonate: ResonateNamespace, options: ProxyOptions): Promise<Response> {
  // The URL resolves dots: `/resonate/../key` as written would leave the public paths.
  const { pathname, search } = new URL(request.url);
  if (!pathname.startsWith("/resonate")) return Response.json({ error: "Not found." }, { status: 404 });
  const path = pathname.slice("/resonate".length);
  const authorized = await authorizedIn(request, path, options.tokens);
  if (authorized instanceof Response) {
    // The route counts wrong tokens.
    if (authorized.status !== 401) options.tries.add(request);
    return authorized;
  }
  if (path.startsWith(OPERATE_PATH)) await noteCommand(request, path, options);
  else if (authorized.method === "POST") await noteChange(authorized, options);
  const response = await fetchFrom(resonate)(new Request(`http://resonate/public${path}${search}`, authorized));
  return new Response(response.body, response); // a copy, whose headers can be changed
}

/** The request as it may be passed on, or the response that refuses it. `path` is what follows the route's own path. */
async function authorizedIn(request: Request, path: string, tokens: Tokens): Promise<Request | Response> {
  const { method, headers } = request;
  const isCall = path === "" || path === "/";
  const isOperators = path.startsWith(OPERATE_PATH);
  const isPoll = method === "GET" && /^\/poll\/[^/]+\/[^/]+$/.test(path);
  if (!isPoll && !isOperators && !(isCall && method === "POST")) return new Response(null, { status: 404 });
  const maxBytes = isOperators ? MAX_ROWS_BYTES : MAX_REQUEST_BYTES;
  const acceptedTokens = [
    ...tokensIn(tokens.OPERATOR_TOKENS),
    ...(isOperators ? [] : tokensIn(tokens.RESONATE_TOKENS)),
  ];
  const isKnown = async (of: string) => (await holderOfToken(of, acceptedTokens)) !== undefined;
  const token = bearerIn(headers);
  if (!isCall && Number(headers.get("content-length") ?? 0) > maxBytes) return tooLarge(maxBytes);
  if (!isCall) return token !== undefined && (await isKnown(token)) ? request : unauthorized();
  // In the protocol the token is in the body, in the head of each request.
  const body = await readBytes(request, maxBytes);
  if (body === 413) return tooLarge(maxBytes);
  if (body === 408) return new Response("408 Request Timeout", { status: 408 });
  const [, auth] = /"auth"\s*:\s*"([^"\\]+)"/.exec(new TextDecoder().decode(body)) ?? [];
  if (auth === undefined || !(await isKnown(auth))) return unauthorized();
  return new Request(request.url, { method, headers, body, signal: request.signal });
}

/**
 * Serves operators' requests about callers' objects, wherever the Resonate server is: reads their rows (GET), restores them
 * (POST), and removes those of a caller (DELETE).
 *
 * @param isOwnServer whether the account's own Resonate server has the jobs
 */
export async function serveRows(
  request: Request,
  rows: CallerRows,
  isOwnServer: boolean,
  options: ProxyOptions,
): Promise<Response> {
  const authorized = await authorizedIn(request, CALLERS, options.tokens);
  if (authorized instanceof Response) return authorized;
  const query = [...new URL(request.url).searchParams];
  const asked = Object.fromEntries(query);
  const { data } = ROWS_QUERIES[request.method]?.safeParse(asked) ?? {};
  if (!data || query.length > Object.keys(asked).length)
    return Response.json({ refused: "The query does not fit." }, { status: 400 });
  const { caller = "", after } = data;
  await noteCommand(request, CALLERS, options);
  if (request.method === "POST") await rows.write((await authorized.json()) as never);
  else if (request.method === "DELETE") {
    for (const key of await keysOf(caller)) await rows.forget(key);
  } else {
    const page = await rows.read(after as never);
    return Response.json({ ...page, isOwnServer });
  }
  return Response.json({});
}

/** What a request about callers' rows asks for. Others are refused: a misspelled one would remove the rows of another caller. */
const ROWS_QUERIES: Readonly<Record<string, z.ZodType<{ caller?: string; after?: unknown }>>> = {
  GET: z.strictObject({ after: z.string().transform(jsonOf).optional() }),
  POST: z.strictObject({}),
  DELETE: z.strictObject({ caller: z.string().min(1) }),
};

/** Notes which operator gives a command, before it is done. */
async function noteCommand({ method, url, headers }: Request, path: string, { tokens, note }: ProxyOptions) {
  const command = AUDITED_COMMANDS[`${method} ${path.slice(OPERATE_PATH.length)}`];
  if (!command || !note) return;
  const query = new URL(url).searchParams;
  const details = ["caller", "time", "bookmark"]
    .filter((name) => query.has(name))
    .map((name) => [name, query.get(name)]);
  const who = await holderOfToken(bearerIn(headers), tokensIn(tokens.OPERATOR_TOKENS));
  await note(who ?? "operator", command, Object.fromEntries(details));
}

/** Notes the requests of the protocol with an operator's token that change a promise or a task, before they are done. */
async function noteChange(request: Request, { tokens, note }: ProxyOptions) {
  const operators = tokensIn(tokens.OPERATOR_TOKENS);
  if (!note || operators.length === 0) return;
  const text = await request.clone().text();
  const isBatch = request.headers.get("content-type")?.startsWith(NDJSON);
  const holders = new Map<string, string | undefined>();
  for (const line of isBatch ? text.split("\n") : [text]) {
    const { kind, head, data } = Object(jsonOf(line));
    if (typeof kind !== "string" || /\.(get|search|read)$/.test(kind)) continue;
    const auth = String(head?.auth);
    if (!holders.has(auth)) holders.set(auth, await holderOfToken(auth, operators));
    const who = holders.get(auth);
    const id = String(data?.id ?? data?.awaited ?? "").slice(0, MAX_ID_CHARACTERS);
    if (who !== undefined) await note(who, kind, { id });
  }
}

const tooLarge = (maxBytes: number) => new Response(`A request may have ${maxBytes} bytes`, { status: 413 });
const unauthorized = () => new Response("Unauthorized", { status: 401 });
