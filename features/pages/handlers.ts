/** Serves browsers: the files of the pages, and the data that MCP does not have. Pages do everything else at `/mcp`. */
import { type Caller, FILE_PATH, referringPart } from "../../core/author/index.ts";
import {
  currentJobOf,
  type DurablePromise,
  latestOf,
  newerGeneration,
  type RemoteStore,
  statusOf,
  timelineOf,
  viewOf,
} from "../../core/jobs/index.ts";
import type { Visit } from "../../core/tools/index.ts";
import { bearerIn } from "../../functions/auth/secret.ts";
import { assetResponse } from "../../functions/http/assets.ts";
import { clientAddress } from "../../functions/http/client-address.ts";
import { Meter } from "../../functions/http/limits.ts";
import { refusalBy } from "../../functions/http/refusal-by.ts";
import { aboutOf } from "./about.ts";
import { endOfSession, follow, linked, session } from "./cookies.ts";
import { NOT_HERE, type PageOptions } from "./options.ts";

/** What a look at a job costs its caller, in requests. */
const JOB_WEIGHT = 4;

const FILES: Readonly<Record<string, string>> = {
  "/": "index.html",
  "/jobs": "jobs.html",
  "/favicon.ico": "icon.svg",
};

/** The longest cookie, in characters. Browsers drop cookies of more than 4,096 bytes without a word. */
const MAX_COOKIE_CHARACTERS = 4_000;

const PRIVATE = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

export async function showFile(c: Visit, { pages }: PageOptions): Promise<Response> {
  const { path } = c.req;
  const file = path.startsWith("/assets/") ? path.slice("/assets/".length) : (FILES[path] ?? "job.html");
  return (await assetResponse(pages, file, c.req.raw)) ?? c.notFound();
}

export async function showServer(c: Visit, { pages }: PageOptions): Promise<Response> {
  return c.body(aboutOf(pages), 200, { "content-type": "application/json" });
}

/** Shows a caller its own job. */
export async function showJob(c: Visit, options: PageOptions): Promise<Response> {
  const { caller, limitKey } = c.var;
  return showJobTo(c, { caller, limitKey: limitKey(), isOwner: true }, options);
}

/** Shows the job of a link. The link leads to the job of its caller, even if the viewer has a job of the same name. */
export async function showLinkedJob(c: Visit, options: PageOptions): Promise<Response> {
  const link = await linked(options.pages, c.req.raw, c.req.query("name") ?? "", options.refusalOf);
  const refusal = await refusalBy(options.admission, c);
  if (!refusal && (!link || link.id === c.var.caller.id)) return showJob(c, options);
  if (!link) return refusal as Response;
  // Views by a link are not the owner's requests.
  const limitKey = clientAddress(c.req.raw) ?? `link of ${link.key}`;
  return showJobTo(c, { caller: link, limitKey, isOwner: false }, options);
}

/** Who looks at a job, and whose it is. */
interface Viewer {
  caller: Caller;
  limitKey: string;
  isOwner: boolean;
}

async function showJobTo(c: Visit, { caller, limitKey, isOwner }: Viewer, options: PageOptions): Promise<Response> {
  // The request of a job's owner has been counted at its admission.
  const meter = options.limit && new Meter(options.limit, limitKey, isOwner ? 1 : 0);
  const limited = await meter?.check({ weight: JOB_WEIGHT });
  if (limited) return limited;
  const refusal = isOwner ? await options.authorize?.(c.req.raw, c.var.scopes, ["read"]) : undefined;
  if (refusal) return refusal;
  const store = options.store.as(caller, c.var.requestLog.requestId);
  try {
    return await answerWithJob(c, { caller, limitKey, isOwner }, store, options);
  } finally {
    meter?.release({ store });
  }
}

async function answerWithJob(
  c: Visit,
  { caller, isOwner }: Viewer,
  store: RemoteStore,
  options: PageOptions,
): Promise<Response> {
  const name = c.req.query("name") ?? "";
  const { signal } = c.req.raw;
  const promise = await store.get(name, signal);
  if (!promise) return c.json({ error: "No job has this name." }, 404, PRIVATE);
  const from = Math.max(1, Math.floor(Number(c.req.query("from"))) || 1);
  const open = (c.req.query("open") ?? "").split(",").map(Number);
  const shown = await jobPage(store, promise, { from, open: open.filter((n) => n > 0) }, signal);
  const task = isOwner && (await options.pages.site.handles?.seal(name, caller.id, promise.createdAt));
  const referring = promise.job.returnsToolResult ? referringPart(promise) : shown;
  // A link leads to one job: references there to files of other jobs may come from outside.
  const only = isOwner ? undefined : name;
  const files = JSON.stringify(shown).includes(FILE_PATH) && (await options.filesIn(referring, caller, only));
  const page = { ...shown, ...(task && { task }), ...(files && { files }), may_write: isOwner };
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

/** Shows who receives events of the caller's jobs. A link gives no right to this. */
export async function showSubscribers(c: Visit, { authorize, subscribers }: PageOptions): Promise<Response> {
  const refusal = await authorize?.(c.req.raw, c.var.scopes, ["read"]);
  if (refusal) return refusal;
  return c.json((await subscribers?.(c.var.caller, c.req.query("job"))) ?? {}, 200, PRIVATE);
}

/** Ends a subscription to events of the caller's jobs, and shows the others. */
export async function endSubscription(c: Visit, { authorize, subscribers }: PageOptions): Promise<Response> {
  const refusal = await authorize?.(c.req.raw, c.var.scopes, ["write"]);
  if (refusal) return refusal;
  return c.json((await subscribers?.(c.var.caller, c.req.query("job"), c.req.query("end"))) ?? {}, 200, PRIVATE);
}

export async function openLink(c: Visit, { pages, refusalOf }: PageOptions): Promise<Response> {
  const sealed = c.req.path.slice("/view/".length);
  const found = await follow(pages, sealed, isSecure(c), refusalOf);
  if (!found) return c.text("This link is void, or its time is over.", 404, PRIVATE);
  return c.body(null, 303, { ...PRIVATE, location: found.path, "set-cookie": found.cookie });
}

export async function signIn(c: Visit, { pages }: PageOptions): Promise<Response> {
  const token = bearerIn(c.req.raw.headers) ?? "";
  const cookie = await session(pages, token, c.var.expires, isSecure(c));
  if (!cookie) return c.json(NOT_HERE, 403);
  return cookie.length > MAX_COOKIE_CHARACTERS ? c.json(tooLong(token), 413) : withCookie(c, cookie);
}

export async function signOut(c: Visit): Promise<Response> {
  return withCookie(c, endOfSession(isSecure(c)));
}

const withCookie = (c: Visit, cookie: string) => c.body(null, 204, { ...PRIVATE, "set-cookie": cookie });

const isSecure = (c: Visit): boolean => c.req.url.startsWith("https:");

const tooLong = ({ length }: string) => ({
  error: `The access token is too long for a browser's session (${length} characters): have the authorization server put fewer claims into it.`,
});
