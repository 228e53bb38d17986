import { afterEach, expect, test, vi } from "vitest";
import { exportSpan } from "./export-span.ts";

afterEach(() => void vi.unstubAllGlobals());

test.each([
  ["authorization=Basic%20YTpi", { authorization: "Basic YTpi" }],
  ["authorization=100%, x-scope = a%2Cb", { authorization: "100%", "x-scope": "a,b" }],
  ["x-a=1,not a name=2,x-b=line%0Abreak,x-c=3", { "x-a": "1", "x-c": "3" }],
])("spans are sent with the valid headers of %j", async (OTEL_EXPORTER_OTLP_HEADERS, expected) => {
  const sent = vi.fn(async (_url: string, _init: RequestInit) => new Response());
  vi.stubGlobal("fetch", sent);
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const span = { traceparent, began: Date.now(), method: "tools/call", request_id: "r", status: 200 };
  const none = { parent: undefined, tool: undefined, job: undefined, caller: undefined };
  await exportSpan(
    { ...span, ...none },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector", OTEL_EXPORTER_OTLP_HEADERS },
  );
  expect(sent).toHaveBeenCalledTimes(1);
  const { "content-type": _, ...headers } = Object.fromEntries(new Headers(sent.mock.calls[0]?.[1].headers));
  expect(headers).toEqual(expected);
});
