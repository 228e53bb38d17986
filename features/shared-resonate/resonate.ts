/**
 * The door of the Resonate object at the edge. The route is public, and all callers share the object, so only requests of workers
 * and operators reach it, judged by path, method, size and token. The object checks all of this again.
 */
import { keysOf } from "../../core/author/caller.ts";
import { fetchFrom } from "../../core/resonate/object-address.ts";
import { readBytes } from "../../core/resonate/read-bytes.ts";
import { sha256Of } from "../../core/resonate/sha256.ts";
import { bearerIn, holderOf, tokensIn } from "../../functions/auth/secret.ts";
import type { Config } from "../../functions/config.ts";
import type { Callers } from "../../functions/objects/callers.ts";
import type { Edge } from "../../functions/parts.ts";
import type { RoomRow } from "../backup/room-rows.ts";

/** The largest request, in bytes: the same as in the object, and a larger one for rows that an operator restores. */
const MAX_BODY = 2 * 1024 * 1024;
const MAX_ROWS = 32 * 1024 * 1024;

const OPERATE = "/operate/";
const ROOMS = `${OPERATE}rooms`;

/** The commands in the trail, by a request that each of them makes. They read, replace or remove what the server keeps. */
const COMMANDS: Readonly<Record<string, string>> = {
  ...{ "GET rows": "backup", "GET rooms": "backup", "POST bucket": "backup" },
  ...{ "GET bucket": "restore", "POST rows": "restore", "POST rooms": "restore", "POST key": "restore" },
  ...{ "POST caller": "forget", "DELETE rooms": "forget", "POST recover": "recover" },
};

/** Passes requests of workers elsewhere and of operators on to the Resonate object, where the deployment allows that. */
export async function throughDoor(request: Request, { config, refused, callers }: Edge): Promise<Response> {
  const { RESONATE, RESONATE_PUBLIC } = config;
  // The URL resolves dots: `/resonate/../key` as written would leave the public paths.
  const { pathname, search } = new URL(request.url);
  const isOpen = RESONATE && RESONATE_PUBLIC === "1" && request.method !== "DELETE";
  if (!isOpen || !pathname.startsWith("/resonate")) return Response.json({ error: "Not found." }, { status: 404 });
  const path = pathname.slice("/resonate".length);
  const passed = await atDoor(request, path, config);
  if (passed instanceof Response) {
    // Wrong tokens are counted in `app.ts`, for all doors; other refusals here.
    if (passed.status !== 401) refused.add(request);
    return passed;
  }
  if (path.startsWith(OPERATE)) await noteCommand(request, path, config, callers);
  const response = await fetchFrom(RESONATE)(new Request(`http://resonate/public${path}${search}`, passed));
  return new Response(response.body, response); // a copy, whose headers can be changed
}

/** The request as it may be passed on, or the response that refuses it. `path` is what follows the door's own path. */
async function atDoor(request: Request, path: string, config: Config): Promise<Request | Response> {
  const { method, headers } = request;
  const isCall = path === "" || path === "/";
  const isOperators = path.startsWith(OPERATE);
  const isPoll = method === "GET" && /^\/poll\/[^/]+\/[^/]+$/.test(path);
  if (!isPoll && !isOperators && !(isCall && method === "POST")) return new Response(null, { status: 404 });
  const most = isOperators ? MAX_ROWS : MAX_BODY;
  const known = [...tokensIn(config.OPERATOR_TOKENS), ...(isOperators ? [] : tokensIn(config.RESONATE_TOKENS))];
  const isKnown = async (token: string) => holderOf(await sha256Of(token), known) !== undefined;
  const shown = bearerIn(headers);
  if (!isCall && Number(headers.get("content-length") ?? 0) > most) return tooLarge(most);
  if (!isCall) return shown !== undefined && (await isKnown(shown)) ? request : unauthorized();
  // In the protocol the token is in the body, in the head of each request.
  const body = await readBytes(request, most);
  if (body === 413) return tooLarge(most);
  if (body === 408) return new Response("408 Request Timeout", { status: 408 });
  const [, auth] = /"auth"\s*:\s*"([^"\\]+)"/.exec(new TextDecoder().decode(body)) ?? [];
  if (auth === undefined || !(await isKnown(auth))) return unauthorized();
  return new Request(request.url, { method, headers, body, signal: request.signal });
}

/**
 * Serves operators' requests about callers' objects, wherever the Resonate server is: reads their rows (GET), restores them
 * (POST), and removes those of a caller (DELETE).
 */
export async function operateRooms(request: Request, config: Config, callers: Callers) {
  const passed = await atDoor(request, ROOMS, config);
  if (passed instanceof Response) return passed;
  await noteCommand(request, ROOMS, config, callers);
  const { rooms } = callers;
  const asked = new URL(request.url).searchParams;
  if (request.method === "POST") await rooms.writeRooms((await passed.json()) as RoomRow[]);
  else if (request.method === "DELETE") {
    for (const key of await keysOf(asked.get("caller") ?? "")) await rooms.forgetRoom(key);
  } else {
    const page = await rooms.readRooms(JSON.parse(asked.get("after") ?? "null") ?? undefined);
    // Whether the account's own Resonate server has the jobs.
    return Response.json({ ...page, isOwnServer: config.RESONATE !== undefined });
  }
  return Response.json({});
}

/** Notes in the trail which operator gives a command, before it is done. */
async function noteCommand(
  { method, url, headers }: Request,
  path: string,
  { OPERATOR_TOKENS }: Config,
  callers: Callers | undefined,
) {
  const what = COMMANDS[`${method} ${path.slice(OPERATE.length)}`];
  if (!what || !callers) return;
  const asked = new URL(url).searchParams;
  const about = ["caller", "time", "bookmark"].filter((name) => asked.has(name)).map((name) => [name, asked.get(name)]);
  const who = holderOf(await sha256Of(bearerIn(headers) ?? ""), tokensIn(OPERATOR_TOKENS));
  await callers.operate("command", who ?? "operator", what, Object.fromEntries(about));
}

const tooLarge = (most: number) => new Response(`A request may have ${most} bytes`, { status: 413 });
const unauthorized = () => new Response("Unauthorized", { status: 401 });
