import { afterEach, expect, test, vi } from "vitest";
import { call, json, Refused } from "./server.ts";

afterEach(() => void vi.unstubAllGlobals());

const begun = '{"jsonrpc":"2.0","id":1,"res';
const progress = 'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n';

test.each([
  ["JSON", "application/json", begun],
  ["a stream", "text/event-stream", progress],
])("an answer that is cut off is no refusal of the server: %s", async (_, type, body) => {
  const answer = () => new Response(body, { headers: { "content-type": type } });
  vi.stubGlobal("fetch", async () => answer());
  const failed = await call("probe_status", {}).catch((error) => error);
  expect([failed instanceof Error, failed instanceof Refused]).toEqual([true, false]);
  const read = await json(answer()).catch((error) => error);
  expect([read instanceof Error, read instanceof Refused]).toEqual([true, false]);
});
