/**
 * What Resonate's own pages (`resonatehq/resonate-observability-web-ui`) read, by the protocol before today's: promises and
 * schedules, found and one by one, of a server that speaks today's. Nothing is written.
 */
import { Hono } from "hono";
import type { ResonateClient } from "../../core/store/client.ts";
import type { PromiseRecord, Schedule } from "../../core/store/protocol.ts";
import { isLocalHost } from "../../server/node/loopback.ts";

/** How many promises one search of the server asks for. */
const PAGE = 500;
/** How many the pages get where they do not say, and at most: they say up to 100. */
const LIMIT = { usual: 50, most: 1_000 };

export interface ObservedOptions {
  client: ResonateClient;
  /** Only promises whose ids begin with it. */
  namespace: string;
  /** How many promises are looked through for one answer, at most: today's protocol finds them by id, and not by age. */
  most: number;
  /** What is said of an error. */
  inWords(error: Error): string;
}

export function createObserved({ client, namespace, most, inWords }: ObservedOptions): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    const isFromPage = c.req.header("origin") !== undefined || (c.req.header("sec-fetch-site") ?? "none") !== "none";
    if (isFromPage || !isLocalHost(c.req.header("host"))) return c.json({ error: "Web pages are refused" }, 403);
    await next();
  });
  app.get("/promises", async (c) => {
    const { id = "*", state = "", limit, cursor, sortId } = c.req.query();
    const isWanted = matcher(id);
    const tags = tagsOf(c.req.query());
    const wanted = state.toLowerCase();
    const found = (await searchAll(tags)).filter(
      (promise) => isWanted(promise.id) && promise.state.startsWith(wanted), // the earlier `rejected` is all that ended so
    );
    if (sortId !== undefined) found.sort((a, b) => Number(sortId) * (a.createdAt - b.createdAt));
    const { part, next } = slice(found, limit, cursor);
    return c.json({ promises: part.map(earlierPromise), ...(next !== undefined && { cursor: next }) });
  });
  app.get("/promises/:id{.+}", async (c) => {
    const promise = await client.call({ kind: "promise.get", data: { id: c.req.param("id") } });
    return promise?.id.startsWith(namespace) ? c.json(earlierPromise(promise)) : c.json({ error: "not found" }, 404);
  });
  app.get("/schedules", async (c) => {
    const { id = "*", limit, cursor } = c.req.query();
    const isWanted = matcher(id);
    const answer = await client.send("schedule.search", { limit: PAGE });
    const found = answer.status === 200 ? answer.data.schedules.filter((schedule) => isWanted(schedule.id)) : [];
    const { part, next } = slice(found, limit, cursor);
    return c.json({ schedules: part.map(earlierSchedule), ...(next !== undefined && { cursor: next }) });
  });
  app.get("/schedules/:id{.+}", async (c) => {
    const answer = await client.send("schedule.get", { id: c.req.param("id") });
    return answer.status === 200 ? c.json(earlierSchedule(answer.data.schedule)) : c.json({ error: "not found" }, 404);
  });
  app.onError((error, c) => c.json({ error: inWords(error) }, 502));
  return app;

  async function searchAll(tags: Record<string, string>): Promise<PromiseRecord[]> {
    const found: PromiseRecord[] = [];
    let cursor: string | undefined;
    do {
      const limit = Math.min(PAGE, most - found.length);
      const page = await client.search({ tags, limit, ...(cursor !== undefined && { cursor }) });
      found.push(...page.promises);
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && found.length < most);
    return found.filter(({ id }) => id.startsWith(namespace));
  }
}

/** Whether an id is one of those that a pattern means, in which `*` stands for any text. */
function matcher(pattern: string): (id: string) => boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const regex = new RegExp(`^${parts.join(".*")}$`, "s");
  return (id) => regex.test(id);
}

/** `tags[name]=value`. */
function tagsOf(query: Record<string, string>): Record<string, string> {
  const tags = Object.entries(query).flatMap(([key, value]) => {
    const name = /^tags\[(.+)\]$/.exec(key)?.[1];
    return name === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(tags);
}

/** A page of a list, and the cursor of the next: how many come before it. */
function slice<T>(all: readonly T[], limit = String(LIMIT.usual), cursor = "0"): { part: T[]; next?: string } {
  const from = Number(cursor) || 0;
  const to = from + Math.min(Math.max(1, Number(limit) || LIMIT.usual), LIMIT.most);
  return { part: all.slice(from, to), ...(to < all.length && { next: String(to) }) };
}

const earlierPromise = ({ id, state, param, value, tags, timeoutAt, createdAt, settledAt }: PromiseRecord) => ({
  ...{ id, state: state.toUpperCase(), param, value, tags, timeout: timeoutAt, createdOn: createdAt },
  ...(settledAt !== undefined && settledAt !== null && { completedOn: settledAt }),
});

const earlierSchedule = ({ id, cron, promiseId, promiseTags, createdAt, nextRunAt, lastRunAt }: Schedule) => ({
  ...{ id, cron, promiseId, tags: promiseTags, createdOn: createdAt, nextRunTime: nextRunAt },
  ...(lastRunAt !== undefined && lastRunAt !== null && { lastRunTime: lastRunAt }),
});
