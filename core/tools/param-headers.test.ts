/** Compared with the SDK's client, which sends the same headers for a tool of the same definition. */
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { lenientForms } from "./advertised.ts";
import { areConforming, declarationsIn, headerMismatch, paramHeaders, withoutAnnotations } from "./param-headers.ts";

const schema = {
  type: "object",
  properties: {
    city: { type: "string", "x-mcp-header": "City" },
    day: { type: "integer", "x-mcp-header": "Day" },
    dry: { type: "boolean", "x-mcp-header": "Dry-Run" },
    place: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    other: { type: "string" },
  },
};

/** The headers with which the SDK's client calls a tool. */
async function sdkHeaders(args: Record<string, unknown>): Promise<Record<string, string>> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  const sent = Promise.withResolvers<Record<string, string>>();
  far.onmessage = (message) => {
    const { id, method } = message as { id?: number; method?: string };
    const result = {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {} },
      serverInfo: { name: "acme", version: "1" },
    };
    if (method === "server/discover") void far.send({ jsonrpc: "2.0", id: id ?? 0, result });
  };
  const { send } = near;
  near.send = (message, options) => {
    if ("method" in message && message.method === "tools/call") {
      sent.resolve({ ...(options as { headers?: Record<string, string> } | undefined)?.headers });
    }
    return send.call(near, message, options);
  };
  await far.start();
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(near);
  const toolDefinition = { name: "report", inputSchema: schema } as never;
  void client.callTool({ name: "report", arguments: args }, { toolDefinition }).catch(() => {});
  const headers = await sent.promise;
  await client.close();
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

test.each([
  { city: "Zurich", day: 5, dry: false, place: { region: "north" }, other: "x" },
  { city: "Zürich 東京", day: -1 },
  { city: "", day: 2 ** 60 },
  { city: " padded ", place: { region: "=?base64?eA==?=" } },
  { city: "a\tb\nc", day: null, place: null },
  { city: "\ufeffmark", dry: true },
  {},
])("the headers of a call with %j are those of the SDK's client, and agree with the arguments", async (args) => {
  const headers = paramHeaders(schema, args);
  expect(headers).toEqual(await sdkHeaders(args));
  expect(headerMismatch(schema, args, new Headers(headers))).toBeUndefined();
});

test("a header that is missing, that differs or that is badly encoded is a mismatch; one without an argument is ignored", () => {
  const mismatch = (args: object, headers: Record<string, string>) =>
    headerMismatch(schema, args, new Headers(headers));
  expect(mismatch({ city: "Bern" }, {})).toBe("the header mcp-param-city is missing, and the argument city is there");
  expect(mismatch({ city: "Bern" }, { "Mcp-Param-City": "Basel" })).toMatch(/mcp-param-city is not what/);
  expect(mismatch({ city: "x" }, { "Mcp-Param-City": "=?base64?eA?=" })).toMatch(/is not what/);
  expect(mismatch({ day: 42 }, { "Mcp-Param-Day": "42.0" })).toBeUndefined();
  expect(mismatch({ day: 42 }, { "Mcp-Param-Day": "0x2a" })).toMatch(/is not what/);
  expect(mismatch({}, { "Mcp-Param-City": "Basel" })).toBeUndefined();
});

test("a schema that conforming clients would refuse is found, and is listed without its annotations", () => {
  expect(areConforming(schema)).toBe(true);
  const annotated = (property: object) => ({ type: "object", properties: { a: property } });
  const wrong = [
    annotated({ type: "number", "x-mcp-header": "A" }),
    annotated({ type: ["string", "null"], "x-mcp-header": "A" }),
    annotated({ type: "string", "x-mcp-header": "not a token" }),
    annotated({ type: "array", items: { type: "string", "x-mcp-header": "A" } }),
    annotated({ anyOf: [{ type: "string", "x-mcp-header": "A" }] }),
    {
      type: "object",
      properties: { a: { type: "string", "x-mcp-header": "A" }, b: { type: "string", "x-mcp-header": "a" } },
    },
  ];
  expect(wrong.map(areConforming)).toEqual(wrong.map(() => false));
  expect(declarationsIn(withoutAnnotations(wrong[0] ?? {}))).toEqual([]);
});

test("an argument that is repeated in a header is advertised as its author wrote it, required or not", () => {
  const json = { ...schema, required: ["day"] } as never;
  expect(lenientForms(json)).toMatchObject({
    properties: { city: schema.properties.city, day: schema.properties.day },
  });
});
