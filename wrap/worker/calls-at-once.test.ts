import { expect, test } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { freePort } from "../../testing/stack/port.ts";
import { callAtOnce, SENT } from "../at-once.ts";
import { CallsInFlight } from "./call/call-in-flight.ts";
import { serveCalls } from "./calls-at-once.ts";
import type { RequestHooks } from "./connection/open-request.ts";
import type { WrappedServer } from "./wrapped-server.ts";

const ARGS = { tool: "read", arguments: {}, key: "1", once: false };
const LOG = { debug() {}, info() {}, warn() {}, error() {} };

test("an answer at once comes with the progress that the server has reported, and with nothing that it has not", async () => {
  const request = (_method: string, _params: object, { onProgress }: RequestHooks) => {
    onProgress?.({ progress: 1 });
    return { result: Promise.resolve({ content: [] }), cancel() {}, leave() {}, recorded() {} };
  };
  const client = { getServerCapabilities: () => ({}) };
  const connection = { request, session: {}, era: "modern", revision: "2026-07-28", client, tools: [] };
  const server = {
    calls: new CallsInFlight(),
    options: { name: "acme" },
    takeSlot: async () => ({ index: 0, free() {} }),
    connection: async () => connection,
  } as unknown as WrappedServer;
  const worker = { url: `http://127.0.0.1:${await freePort()}`, token: "t" };
  serveCalls(worker, { server, log: LOG, mayRun: async () => true });
  const told = await callAtOnce(worker, "acme.read.1", ARGS);
  expect(told).toEqual({ answer: { content: [] }, progress: { done: 1 } });
});

test.each([
  ["says nothing", undefined, undefined],
  ["says only that the call is sent", { [SENT]: '{"at":"now"}' }, { sent: { at: "now" } }],
])("a call becomes a job if the worker %s", async (_what, headers, expected) => {
  await using worker = await serveHttp((_request, response) => {
    if (headers) response.writeHead(200, headers).flushHeaders();
  });
  expect(await callAtOnce({ url: worker.url, token: "t" }, "acme.read.1", ARGS)).toEqual(expected);
});
