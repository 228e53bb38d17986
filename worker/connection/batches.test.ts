import { text } from "node:stream/consumers";
import pino from "pino";
import { afterEach, expect, test, vi } from "vitest";
import type { Exchange } from "../../core/resonate/connection/client.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { NDJSON } from "../../core/resonate/connection/protocol.ts";
import { startResonate } from "../../server/node/http.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { inBatches, post } from "./exchange.ts";

const cleanup: (() => void)[] = [];
afterEach(() => {
  for (const end of cleanup.splice(0)) end();
});

/** An exchange that records the content types of its requests. */
function watched(): { exchange: ReturnType<typeof inBatches>; sent: string[] } {
  const sent: string[] = [];
  const watch: Exchange = (url, body, options) => {
    sent.push(options.type ?? "single");
    return post(url, body, options);
  };
  return { exchange: inBatches(watch), sent };
}

/** A server that answers a batch with `lines`, and every other request with the request's body. */
async function serve(lines: (body: string) => { status: number; text: string }): Promise<string> {
  const server = await serveHttp(async (req, res) => {
    const body = await text(req);
    const { status, text: answer } = req.headers["content-type"] === NDJSON ? lines(body) : { status: 200, text: body };
    res.writeHead(status).end(answer);
  });
  cleanup.push(() => server[Symbol.asyncDispose]());
  return server.url;
}

const OPTIONS = { timeout: 10_000 };

test("requests of the same moment go to the embedded server as batches, and each gets its own answer", async () => {
  const server = await startResonate({ port: 0, data: undefined, token: undefined, log: pino({ level: "silent" }) });
  cleanup.push(() => void server.close());
  const { exchange, sent } = watched();
  const client = new ResonateClient({ url: server.url, exchange });
  const create = (n: number) => {
    const data = { id: `p${n}`, timeoutAt: Date.now() + 60_000, param: {}, tags: {} };
    return client.call({ kind: "promise.create", data });
  };
  const created = await Promise.all(Array.from({ length: 100 }, (_, n) => create(n)));
  expect(created.map((each) => each?.id)).toEqual(created.map((_, n) => `p${n}`));
  expect(sent).toEqual([NDJSON, NDJSON]);
  // A single request is no batch, and a promise that does not exist affects no other request of its batch.
  expect(await client.call({ kind: "promise.get", data: { id: "p7" } })).toMatchObject({ id: "p7" });
  const some = await Promise.all(["p1", "none"].map((id) => client.call({ kind: "promise.get", data: { id } })));
  expect(some).toMatchObject([{ id: "p1" }, undefined]);
  expect(sent.slice(2)).toEqual(["single", NDJSON]);
});

test("a server that refuses a batch gets single requests from then on", async () => {
  const url = await serve(() => ({ status: 400, text: '{"kind":"unknown"}' }));
  const { exchange, sent } = watched();
  const ask = () => Promise.all(["a", "b", "c"].map((body) => exchange(url, body, OPTIONS)));
  const answers = ["a", "b", "c"].map((text) => ({ status: 200, text }));
  expect(await ask()).toEqual(answers);
  expect(await ask()).toEqual(answers);
  expect(sent).toEqual([NDJSON, ...Array(6).fill("single")]);
});

test("a server that refused batches gets one again after some minutes, as another server may have replaced it", async () => {
  let isReplaced = false;
  const url = await serve((body) => (isReplaced ? { status: 200, text: body } : { status: 400, text: "" }));
  const { exchange, sent } = watched();
  const ask = () => Promise.all(["a", "b"].map((body) => exchange(url, body, OPTIONS)));
  const answers = ["a", "b"].map((text) => ({ status: 200, text }));
  vi.useFakeTimers({ toFake: ["performance"] });
  cleanup.push(() => vi.useRealTimers());
  const later = async (minutes: number) => {
    vi.advanceTimersByTime(minutes * 60_000);
    expect(await ask()).toEqual(answers);
    return sent.splice(0);
  };
  expect(await later(0)).toEqual([NDJSON, "single", "single"]);
  isReplaced = true;
  expect(await later(1)).toEqual(["single", "single"]);
  isReplaced = false;
  expect(await later(5)).toEqual([NDJSON, "single", "single"]);
  isReplaced = true;
  expect(await later(5)).toEqual([NDJSON]);
  expect(await later(0)).toEqual([NDJSON]);
});

test("another failure is the answer to all requests of a batch, and a batch without an answer fails all of them", async () => {
  const busy = await serve(() => ({ status: 503, text: "busy" }));
  const { exchange } = watched();
  const both = (url: string) => Promise.allSettled(["a", "b"].map((body) => exchange(url, body, OPTIONS)));
  const value = { status: 503, text: "busy" };
  expect(await both(busy)).toEqual([
    { status: "fulfilled", value },
    { status: "fulfilled", value },
  ]);
  expect((await both("http://127.0.0.1:9")).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

test("an aborted request ends at once, and the others of its batch are answered", async () => {
  const url = await serve((body) => ({ status: 200, text: body }));
  const { exchange, sent } = watched();
  const leaving = new AbortController();
  const given = exchange(url, "a", { ...OPTIONS, signal: leaving.signal });
  const other = exchange(url, "b", OPTIONS);
  leaving.abort(new Error("gone"));
  await expect(given).rejects.toThrow("gone");
  expect(await other).toEqual({ status: 200, text: "b" });
  expect(sent).toEqual([NDJSON]);
});

test("a long request is sent on its own", async () => {
  const url = await serve((body) => ({ status: 200, text: body }));
  const { exchange, sent } = watched();
  const bodies = ["a".repeat(100_000), "b".repeat(40_000), "c".repeat(40_000), "d"];
  const answers = await Promise.all(bodies.map((body) => exchange(url, body, OPTIONS)));
  expect(answers.map(({ text }) => text[0])).toEqual(["a", "b", "c", "d"]);
  expect(sent).toEqual(["single", "single", NDJSON]);
});
