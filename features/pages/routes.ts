/** Serves browsers: the files of the pages, and the data that MCP does not have. Pages do everything else at `/mcp`. */
import type { Caller } from "../../core/author/caller.ts";
import { mayHaveFiles, referringPart } from "../../core/author/file.ts";
import { currentJobOf } from "../../core/jobs/current-job.ts";
import type { DurablePromise } from "../../core/jobs/durable-promise.ts";
import { latestOf } from "../../core/jobs/feed/partial.ts";
import { timelineOf } from "../../core/jobs/feed/timeline.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { newerGeneration } from "../../core/jobs/start.ts";
import { statusOf, viewOf } from "../../core/jobs/status.ts";
import { bearerIn } from "../../functions/auth/secret.ts";
import { assetResponse } from "../../functions/http/assets.ts";
import { clientAddress } from "../../functions/http/client-address.ts";
import { limitedResponse } from "../../functions/http/rate-limit.ts";
import type { Visit } from "../../functions/parts.ts";
import { aboutOf } from "./about.ts";
import { endOfSession, follow, linked, session } from "./cookies.ts";
import { isOwnPage } from "./sessions.ts";

/** What a look at a job costs its caller, in requests. */
const WEIGHT = 4;

const FILES: Readonly<Record<string, string>> = {
  "/": "index.html",
  "/jobs": "jobs.html",
  "/favicon.ico": "icon.svg",
};

/** The longest cookie, in characters. Browsers drop cookies of more than 4,096 bytes without a word. */
const MOST_COOKIE = 4_000;

const PRIVATE = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

export async function answerPage(c: Visit): Promise<Response> {
  const { path, method } = c.req;
  switch (`${method === "HEAD" ? "GET" : method} ${path.split("/", 3).join("/")}`) {
    case "GET /pages/about":
      return c.json(aboutOf(c.var.edge.pages));
    case "GET /pages/job":
    case "GET /pages/link":
      return showJob(c);
    case "GET /pages/told":
    case "DELETE /pages/told":
      return showTold(c);
    case "POST /pages/session":
      return signIn(c);
    case "DELETE /pages/session":
      return isOwnPage(c.req.raw) ? withCookie(c, endOfSession(isSecure(c))) : c.json(NOT_HERE, 403);
    default:
      return path.startsWith("/view/") ? openLink(c) : showFile(c);
  }
}

async function showFile(c: Visit): Promise<Response> {
  const { path } = c.req;
  const file = path.startsWith("/assets/") ? path.slice("/assets/".length) : (FILES[path] ?? "job.html");
  return (await assetResponse(c.var.edge.pages, file, c.req.raw)) ?? c.notFound();
}

async function showJob(c: Visit): Promise<Response> {
  const { edge, line } = c.var;
  const { pages, rateLimit } = edge;
  const name = c.req.query("name") ?? "";
  const isLink = c.req.path !== "/pages/job";
  const link = isLink ? await linked(pages, c.req.raw, name, (await edge.settings()).blocked) : undefined;
  const identified = await edge.identify(c.req.raw, line);
  if (identified instanceof Response && !link) return identified;
  // A link leads to the job of its caller, even if the viewer has a job of the same name.
  const isOwn = !(identified instanceof Response) && (!link || link.id === identified.caller.id);
  const own = isOwn ? identified : undefined;
  const caller = (own?.caller ?? link) as Caller;
  // Views by a link are not the owner's requests.
  const key = own?.key ?? clientAddress(c.req.raw) ?? `link of ${caller.key}`;
  const limited = await rateLimit?.(key, { weight: WEIGHT });
  if (limited) return limitedResponse(limited);
  const refused = own && (await edge.auth.authorize(own.request, own.scopes, ["read"]));
  if (refused) return refused;
  const store = own?.store ?? edge.store.as(caller, line.requestId);
  const { signal } = c.req.raw;
  const promise = await store.get(name, signal);
  if (!promise) return c.json({ error: "No job has this name." }, 404, PRIVATE);
  const from = Math.max(1, Math.floor(Number(c.req.query("from"))) || 1);
  const open = (c.req.query("open") ?? "").split(",").map(Number);
  const shown = await jobPage(store, promise, { from, open: open.filter((n) => n > 0) }, signal);
  const task = own && (await pages.site.handles?.seal(name, caller.id, promise.createdAt));
  const referring = promise.job.answers ? referringPart(promise) : shown;
  // A link leads to one job: references there to files of other jobs may come from outside.
  const only = own ? undefined : name;
  const files = mayHaveFiles(JSON.stringify(shown)) && (await (await edge.files()).viewsIn(referring, caller, only));
  const page = { ...shown, ...(task && { task }), ...(files && { files }), may_write: own !== undefined };
  return c.json(page, 200, PRIVATE);
}

interface Look {
  from: number;
  open: number[];
}

/** A job as its page shows it, with its timeline from the `from`th record on, and the open records that the page knows. */
async function jobPage(store: RemoteStore, promise: DurablePromise, { from, open }: Look, signal: AbortSignal) {
  const { job, args, deadline } = promise;
  const [{ feed, questions }, newer, timeline, waits] = await Promise.all([
    currentJobOf(store, promise, signal, "recent"),
    newerGeneration(store, promise, signal),
    timelineOf(promise.id, from, (id) => store.child(id, signal), open),
    store.isOffered(promise, signal),
  ]);
  const partial = await latestOf(store, promise.id, feed.entry, signal);
  const { questions: _asked, ...doing } = feed.entry ?? { questions: {} };
  return {
    ...viewOf(promise.name, promise),
    kind: job.kind,
    args,
    view: job.view,
    deadline: new Date(deadline).toISOString(),
    doing,
    questions: [...questions].map(([key, { question }]) => ({ key, ...question })),
    timeline,
    waits,
    ...(partial && { partial }),
    ...(newer && { newer: { job_name: newer.name, status: statusOf(newer) } }),
  };
}

/** Shows who receives events of the caller's jobs, or ends a subscription. A link gives no right to this. */
async function showTold(c: Visit): Promise<Response> {
  const { edge, line } = c.var;
  const { job, end } = c.req.query();
  const isRead = c.req.method !== "DELETE";
  const own = isRead || isOwnPage(c.req.raw) ? await edge.identify(c.req.raw, line) : c.json(NOT_HERE, 403);
  if (own instanceof Response) return own;
  const refused = await edge.auth.authorize(own.request, own.scopes, [isRead ? "read" : "write"]);
  if (refused) return refused;
  const seen = await edge.callers?.seen(own.caller, job, isRead ? undefined : end);
  return c.json(seen ?? {}, 200, PRIVATE);
}

async function openLink(c: Visit): Promise<Response> {
  const { pages, settings } = c.var.edge;
  const sealed = c.req.path.slice("/view/".length);
  const found = await follow(pages, sealed, isSecure(c), (await settings()).blocked);
  if (!found) return c.text("This link is void, or its time is over.", 404, PRIVATE);
  return c.body(null, 303, { ...PRIVATE, location: found.path, "set-cookie": found.cookie });
}

async function signIn(c: Visit): Promise<Response> {
  const { edge, line } = c.var;
  const token = bearerIn(c.req.raw.headers) ?? "";
  const identified = isOwnPage(c.req.raw) ? await edge.identify(c.req.raw, line) : c.json(NOT_HERE, 403);
  if (identified instanceof Response) return identified;
  const cookie = await session(edge.pages, token, identified.expires, isSecure(c));
  if (!cookie) return c.json(NOT_HERE, 403);
  return cookie.length > MOST_COOKIE ? c.json(tooLong(token), 413) : withCookie(c, cookie);
}

const withCookie = (c: Visit, cookie: string) => c.body(null, 204, { ...PRIVATE, "set-cookie": cookie });

const isSecure = (c: Visit): boolean => c.req.url.startsWith("https:");

const NOT_HERE = { error: "Only a page of this server may; it signs in where sessions are switched on (VIEW_KEY)." };

const tooLong = ({ length }: string) => ({
  error: `The access token is too long for a browser's session (${length} characters): have the authorization server put fewer claims into it.`,
});
