import type { RequestListener, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Finding } from "../../cli/doctor/finding.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { freePort } from "../../testing/stack/port.ts";

/** A server on a free port, for answers that no part of the product gives by itself. */
export async function serve(listener: RequestListener) {
  const server = await serveHttp(listener);
  return { ...server, url: new URL(server.url) };
}

/** An address where nothing listens. */
export const nowhere = async () => new URL(`http://127.0.0.1:${await freePort()}`);

/** The finding of one check. */
export function of(findings: Finding | Finding[], check: string): Finding {
  const found = [findings].flat().find((finding) => finding.check === check);
  if (!found) throw new Error(`nothing was found about ${check}: ${JSON.stringify(findings)}`);
  return found;
}

/** A proxy to `target` that fires a timer only when the timer is read, as 0.10 does for timers without a target. */
export function serveWithLateTimers(target: string) {
  const pending = new Map<string, object>();
  return serve(async (req, res) => {
    const body = await text(req);
    const { kind, data } = JSON.parse(body || "{}");
    const answer = await fetch(target + req.url, { method: req.method ?? "GET", ...(body && { body }) });
    if (kind === "promise.get") pending.delete(data.id);
    if (kind !== "promise.search") return passOn(answer, res);
    const found = (await answer.json()) as { data: { promises: { id: string }[] } };
    for (const promise of found.data.promises) pending.set(promise.id, promise);
    const all = { ...found, data: { ...found.data, promises: [...pending.values()] } };
    return void res.writeHead(answer.status).end(JSON.stringify(all));
  });
}

/** A proxy to `target` that refuses the ids of job records, as releases after 0.9.8 do. */
export function serveNewerRelease(target: string) {
  return serve(async (req, res) => {
    const body = await text(req);
    const { kind, data } = JSON.parse(body || "{}");
    if (kind === "promise.create" && !data.id.startsWith(`${data.tags["resonate:origin"]}.`)) {
      const reason = "Invalid request: Promise ID must be prefixed by resonate:origin";
      return void res.writeHead(400).end(JSON.stringify({ kind, head: { corrId: "1", status: 400 }, data: reason }));
    }
    const answer = await fetch(target + req.url, { method: req.method ?? "GET", ...(body && { body }) });
    return passOn(answer, res);
  });
}

/** Passes on an answer, which may be a stream that the client leaves. */
async function passOn({ status, headers, body }: Response, res: ServerResponse): Promise<void> {
  res.writeHead(status, { "content-type": headers.get("content-type") ?? "" }).flushHeaders();
  await pipeline(body ?? [], res).catch(() => {});
}
