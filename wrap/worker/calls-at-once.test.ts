import { expect, test } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { freePort } from "../../testing/stack/port.ts";
import { callAtOnce, SEND_RECORD_HEADER } from "../at-once.ts";
import { CallsInFlight } from "./call/calls-in-flight.ts";
import { serveCalls } from "./calls-at-once.ts";
import type { RequestHooks } from "./host/open-request.ts";
import type { WrappedServer } from "./wrapped-server.ts";

const CALL_ARGS = { tool: "read", arguments: {}, key: "1", once: false };
const SILENT_LOG = { debug() {}, info() {}, warn() {}, error() {} };

/** A worker before a server that answers each call; `methods` has the calls that reached it. */
async function startCalls() {
  const methods: string[] = [];
  const request = (method: string, _params: object, { onProgress }: RequestHooks) => {
    methods.push(method);
    onProgress?.({ progress: 1 });
    return { result: Promise.resolve({ content: [] }), cancel() {}, leave() {}, release() {} };
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
  serveCalls(worker, { server, log: SILENT_LOG, mayRun: async () => true });
  return { worker, methods };
}

test("an answer at once comes with the progress that the server has reported, and with nothing that it has not", async () => {
  const { worker } = await startCalls();
  const state = await callAtOnce(worker, "acme.read.1", CALL_ARGS);
  expect(state).toEqual({ answer: { content: [] }, progress: { done: 1 } });
});

test("a worker that hung does not send a call that its job makes by now", async () => {
  const { worker, methods } = await startCalls();
  const body = JSON.stringify({ job: "acme.read.1", args: CALL_ARGS, until: Date.now() - 1 });
  const { status } = await fetch(worker.url, { method: "POST", headers: { authorization: "Bearer t" }, body });
  expect([status, methods]).toEqual([503, []]);
});

test.each([
  ["says nothing", undefined, undefined],
  ["says only that the call is sent", { [SEND_RECORD_HEADER]: '{"at":"now"}' }, { sendRecord: { at: "now" } }],
])("a call becomes a job if the worker %s", async (_what, headers, expected) => {
  await using worker = await serveHttp((_request, response) => {
    if (headers) response.writeHead(200, headers).flushHeaders();
  });
  expect(await callAtOnce({ url: worker.url, token: "t" }, "acme.read.1", CALL_ARGS)).toEqual(expected);
});
