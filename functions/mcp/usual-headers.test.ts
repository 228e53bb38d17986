/** Answers for clients that read one type alone. */
import { expect, test } from "vitest";
import { inAcceptedType } from "./usual-headers.ts";

const JSON_ALONE = new Headers({ accept: "application/json" });

function streamOf(...messages: object[]) {
  const events = messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`);
  const isCancelled = { value: false };
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(`: comment\n\n${events.join("")}`)),
    // It never ends by itself.
    cancel: () => {
      isCancelled.value = true;
    },
  });
  const headers = { "content-type": "text/event-stream", "mcp-session-id": "one" };
  return { response: new Response(body, { headers }), isCancelled };
}

const progress = { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } };

test("a stream's response is given as JSON, without what comes before it", async () => {
  const result = { jsonrpc: "2.0", id: 1, result: { content: [] } };
  const { response } = streamOf(progress, result);
  const answer = await inAcceptedType(response, JSON_ALONE);
  expect([answer.headers.get("content-type"), answer.headers.get("mcp-session-id")]).toEqual([
    "application/json",
    "one",
  ]);
  expect(await answer.json()).toEqual(result);
});

test.each(["elicitation/create", "notifications/subscriptions/acknowledged"])(
  "%s, which needs a stream, ends it with a refusal",
  async (method) => {
    const { response, isCancelled } = streamOf(progress, { jsonrpc: "2.0", id: 1, method, params: {} });
    const answer = await inAcceptedType(response, JSON_ALONE);
    expect(answer.status).toBe(406);
    expect(await answer.json()).toMatchObject({
      error: { message: expect.stringContaining("Accept text/event-stream") },
    });
    expect(isCancelled.value).toBe(true);
  },
);
