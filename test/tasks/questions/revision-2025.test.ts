/** Clients of 2025 declare in their handshake that they can ask their user. They get a job's questions on the call's stream. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { type ElicitRequest, ElicitRequestSchema, type ElicitResult } from "@modelcontextprotocol/sdk/types.js";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Stack } from "../../support/stack.ts";
import { accept, startTaskStack } from "../support.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startTaskStack({ beside: {}, bindings: { WAIT_SECONDS: "5" } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** With progress, a client waits longer for the answer to a call. */
const PROGRESS = { onprogress: () => {}, timeout: 60_000 };

/** Connects a client whose user answers by `answer`. */
async function connect(answer: (asked: ElicitRequest["params"]) => ElicitResult | Promise<ElicitResult>) {
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
  await client.connect(new StreamableHTTPClientTransport(new URL(stack.url)) as never);
  const call = async (name: string, args: object, _meta?: object) => {
    const params = { name, arguments: { ...args }, ...(_meta && { _meta: { ..._meta } }) };
    return client.callTool(params, undefined, PROGRESS);
  };
  return { call, [Symbol.asyncDispose]: () => client.close() };
}

const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const post = (message: object, session?: string | null, url = stack.url) =>
  fetch(url, {
    method: "POST",
    headers: { ...HEADERS, "mcp-protocol-version": "2025-06-18", ...(session && { "mcp-session-id": session }) },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });

/** Returns the id of the session that a handshake begins. */
async function sessionOf(capabilities: object, more: object = {}): Promise<string | null> {
  const clientInfo = { name: "test", version: "1.0.0", ...more };
  const params = { protocolVersion: "2025-06-18", capabilities, clientInfo };
  const response = await post({ id: 1, method: "initialize", params });
  expect((await response.text()).includes('"serverInfo"')).toBe(true);
  return response.headers.get("mcp-session-id");
}

/** The messages on the stream of a call. */
async function* callOn(session: string | null, name: string, args: object) {
  const params = { name, arguments: args, _meta: { progressToken: 1 } };
  const { body } = await post({ id: 2, method: "tools/call", params }, session);
  if (!body) throw new Error("no stream");
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) yield JSON.parse(data);
}

let places = 0;
const longRange = () => ({ latitude: 46.1, longitude: -100 - ++places / 100, from: "2012-01", to: "2014-02" });

test.each([
  ["with an ordinary call", undefined],
  ["with a metadata entry of a host", { "claudecode/toolUseId": "toolu_1" }],
])("the user is asked while the call waits, and the call has the result, %s", async (what, _meta) => {
  const asked: string[] = [];
  await using client = await connect(({ message }) => {
    asked.push(message);
    return { action: "accept", content: { confirm: true } };
  });
  const { structuredContent } = await client.call("confirm_delete", { filename: `${what}.txt` }, _meta);
  expect(asked).toEqual([`Delete ${what}.txt?`]);
  expect(structuredContent).toMatchObject({ status: "complete" });
});

test("a confirmation in the arguments does not count from such a client", async () => {
  const asked: string[] = [];
  await using client = await connect(({ message }) => {
    asked.push(message);
    return { action: "decline" };
  });
  const declined = await client.call("weather_range", { ...longRange(), confirm: true });
  expect(declined).toMatchObject({ isError: true, structuredContent: { status: "failed" } });
  expect(asked).toHaveLength(1);
});

test("only a session whose client declared forms is asked, and a forged session id is ignored", async () => {
  const forms = await sessionOf({ elicitation: {} }, { description: "What only the SDK knows of." });
  expect(forms).toEqual(expect.any(String));
  const others = [await sessionOf({}), await sessionOf({ elicitation: { url: {} } })];
  expect(new Set([forms, ...others, await sessionOf({ elicitation: {} })]).size).toBe(4);
  const answers = [null, `${forms}x`, ...others].map(async (session) => {
    const params = { name: "confirm_delete", arguments: { filename: `${session}` } };
    const told = await (await post({ id: 2, method: "tools/call", params }, session)).text();
    expect(told).not.toContain("elicitation/create");
    expect(told).toMatch(/"status":"running".*"waiting_for"/);
  });
  await Promise.all(answers);
});

test("a client that answers with an error gets the question in words at once, without a wait for its user", async () => {
  await using client = await connect(() => Promise.reject(new Error("no forms here")));
  const began = performance.now();
  const { structuredContent } = await client.call("confirm_delete", { filename: "unasked.txt" });
  expect(structuredContent).toMatchObject({ status: "running", waiting_for: [{ question: expect.any(String) }] });
  // Without the error, the call would wait for three minutes.
  expect(performance.now() - began).toBeLessThan(20_000);
});

test("an invalid answer leaves the question open, and a valid one is accepted by any isolate", async () => {
  const session = await sessionOf({ elicitation: {} });
  let id = "";
  for await (const message of callOn(session, "confirm_delete", { filename: "open.txt" })) {
    if (message.method === "elicitation/create") {
      id = message.id;
      expect(message.params.message).toBe("Delete open.txt?");
      const unfit = await post({ id, result: accept({ confirm: 7 }) }, session);
      expect([unfit.status, await unfit.text()]).toEqual([400, expect.stringContaining("stays open")]);
      const forged = await post({ id: `x${id}`, result: accept({ confirm: true }) }, session);
      expect(forged.status).toBe(400);
      expect((await post({ id, result: accept({ confirm: true }) }, session, stack.beside)).status).toBe(202);
    } else if (message.result) {
      expect(message.result.structuredContent).toMatchObject({ status: "complete" });
    }
  }
  expect(id).not.toBe("");
});
