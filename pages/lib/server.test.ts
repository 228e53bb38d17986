import { afterEach, expect, test, vi } from "vitest";
import { call, json, Refusal } from "./server.ts";

afterEach(() => void vi.unstubAllGlobals());

const halfMessage = '{"jsonrpc":"2.0","id":1,"res';
const progress = 'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n';

test.each([
  ["JSON", "application/json", halfMessage],
  ["a stream", "text/event-stream", progress],
])("an answer that is cut off is no refusal of the server: %s", async (_, type, body) => {
  const answer = () => new Response(body, { headers: { "content-type": type } });
  vi.stubGlobal("fetch", async () => answer());
  const callError = await call("probe_status", {}).catch((error) => error);
  expect([callError instanceof Error, callError instanceof Refusal]).toEqual([true, false]);
  const readError = await json(answer()).catch((error) => error);
  expect([readError instanceof Error, readError instanceof Refusal]).toEqual([true, false]);
});
