/** The routes of the pages: their files and the data that MCP does not have. Everything else they do at `/mcp`. */
import type { Caller } from "../../core/definitions/caller.ts";
import { mayHaveFiles } from "../../core/definitions/file.ts";
import { assetResponse } from "../http/assets.ts";
import { clientAddress } from "../http/client-address.ts";
import { jobPage } from "../pages/job-page.ts";
import { isOwnPage } from "../pages/sessions.ts";
import { identify } from "./admission.ts";
import type { App } from "./parts.ts";

/** What a look at a job costs its caller, in requests. */
const WEIGHT = 4;

const PAGES = { "/": "index.html", "/jobs": "jobs.html", "/jobs/*": "job.html" };

const PRIVATE = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

export function routePages(app: App): void {
  for (const [path, file] of Object.entries(PAGES)) {
    app.get(path, async (c) => (await assetResponse(c.var.edge.pages, file, c.req.raw)) ?? c.notFound());
  }
  app.get("/assets/:file", async (c) => {
    return (await assetResponse(c.var.edge.pages, c.req.param("file"), c.req.raw)) ?? c.notFound();
  });
  app.get("/favicon.ico", async (c) => (await assetResponse(c.var.edge.pages, "icon.svg", c.req.raw)) ?? c.notFound());

  app.get("/pages/about", (c) => c.json(c.var.edge.pages.about));

  app.on("GET", ["/pages/job", "/pages/link/:link"], async (c) => {
    const { edge, line } = c.var;
    const { pages, rateLimit } = edge;
    const name = c.req.query("name") ?? "";
    const linked = c.req.path === "/pages/job" ? undefined : await pages.linked(c.req.raw, name);
    const identified = await identify(c.req.raw, edge, line);
    if (identified instanceof Response && !linked) return identified;
    // A link leads to the job of its caller, even if the viewer has a job of the same name.
    const isOwn = !(identified instanceof Response) && (!linked || linked.id === identified.caller.id);
    const own = isOwn ? identified : undefined;
    const caller = (own?.caller ?? linked) as Caller;
    const refused =
      // Views by a link are not the owner's requests.
      (await rateLimit?.(own?.key ?? clientAddress(c.req.raw) ?? `link of ${caller.key}`, {
        weight: WEIGHT,
        of: WEIGHT,
      })) ??
      (own && (await edge.auth.authorize(own.request, own.scopes, ["read"])));
    if (refused) return refused;
    const store = own?.store ?? edge.store.as(caller, line.requestId);
    const { signal } = c.req.raw;
    const promise = await store.get(name, signal);
    if (!promise) return c.json({ error: "No job has this name." }, 404, PRIVATE);
    const from = Math.max(1, Math.floor(Number(c.req.query("from"))) || 1);
    const shown = await jobPage(store, promise, from, signal);
    const task = own && (await pages.site.handles?.seal(name, caller.id, promise.createdAt));
    const files = mayHaveFiles(JSON.stringify(shown)) && (await (await edge.files()).viewsIn(shown, caller));
    const page = { ...shown, ...(task && { task }), ...(files && { files }), may_write: own !== undefined };
    return c.json(page, 200, PRIVATE);
  });

  // A link shows nothing of this: it is asked for as the viewer alone.
  app.on(["GET", "DELETE"], "/pages/told", async (c) => {
    const { edge, line } = c.var;
    const { job, end } = c.req.query();
    const isRead = c.req.method === "GET";
    const own = isRead || isOwnPage(c.req.raw) ? await identify(c.req.raw, edge, line) : c.json(NOT_HERE, 403);
    if (own instanceof Response) return own;
    const refused = await edge.auth.authorize(own.request, own.scopes, [isRead ? "read" : "write"]);
    if (refused) return refused;
    const seen = await edge.told?.seen(own.caller, job, isRead ? undefined : end);
    return c.json(seen ?? {}, 200, PRIVATE);
  });

  app.get("/view/:sealed", async (c) => {
    const found = await c.var.edge.pages.follow(c.req.param("sealed"), c.req.url.startsWith("https:"));
    if (!found) return c.text("This link is void, or its time is over.", 404, PRIVATE);
    return c.body(null, 303, { ...PRIVATE, location: found.path, "set-cookie": found.cookie });
  });

  app.post("/pages/session", async (c) => {
    const { edge, line } = c.var;
    const token = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    const identified = isOwnPage(c.req.raw) ? await identify(c.req.raw, edge, line) : c.json(NOT_HERE, 403);
    if (identified instanceof Response) return identified;
    const cookie = await edge.pages.session(token, identified.expires, c.req.url.startsWith("https:"));
    return cookie ? c.body(null, 204, { ...PRIVATE, "set-cookie": cookie }) : c.json(NOT_HERE, 403);
  });

  app.delete("/pages/session", (c) => {
    if (!isOwnPage(c.req.raw)) return c.json(NOT_HERE, 403);
    const cookie = c.var.edge.pages.endOfSession(c.req.url.startsWith("https:"));
    return c.body(null, 204, { ...PRIVATE, "set-cookie": cookie });
  });
}

const NOT_HERE = { error: "Only a page of this server may; it signs in where sessions are switched on (VIEW_KEY)." };
