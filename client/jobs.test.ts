import { buffer } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { serveHttp } from "../testing/stack/http-server.ts";
import { createClient } from "./index.ts";

const PARTS = ['{"text":', '"a long', ' text"}'];

/** A server with a job that has finished. `refuses` says whether it answers a read of a part of the result with HTTP 429. */
async function serve(refuses: (part: number) => boolean) {
  return await serveHttp(async (request, response) => {
    const { id, method, params } = JSON.parse((await buffer(request)).toString() || "{}");
    const send = (answer: object) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    };
    if (request.method !== "POST") return response.writeHead(405).end();
    if (id === undefined) return response.writeHead(202).end();
    if (method === "initialize") {
      const info = { protocolVersion: "2025-11-25", serverInfo: { name: "s", version: "1" } };
      return send({ result: { ...info, capabilities: { tools: {}, resources: {} } } });
    }
    if (method === "tools/call") return send({ result: { content: [], structuredContent: { running: [] } } });
    if (method !== "resources/read") return send({ error: { code: -32601, message: "no such method" } });
    const { uri } = params;
    const part = Number(new URL(uri).searchParams.get("offset"));
    if (refuses(part)) return response.writeHead(429).end();
    const next = part + 1 < PARTS.length && { next: `job://long?offset=${part + 1}` };
    const job = { job_name: "long", status: "complete", summary: { part: PARTS[part] }, ...next };
    return send({ result: { contents: [{ uri, text: JSON.stringify(job) }] } });
  });
}

test("the parts of a result that were read are not read again, however long the server refuses others", async () => {
  const parts: number[] = [];
  const realNow = Date.now;
  let ahead = 0;
  using _ = vi.spyOn(Date, "now").mockImplementation(() => realNow() + ahead);
  await using server = await serve((part) => {
    const isRefused = part > 0 && !parts.includes(part);
    // Together longer than the minute for which a request is repeated.
    if (isRefused) ahead += 40_000;
    parts.push(part);
    return isRefused;
  });
  await using jobs = createClient({ url: server.url, tools: {} });
  expect(await jobs.wait("long")).toEqual({ text: "a long text" });
  expect(parts).toEqual([0, 1, 1, 2, 2]);
});
