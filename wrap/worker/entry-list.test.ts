import { expect, test } from "vitest";
import { EntryList } from "./entry-list.ts";

const inputSchema = { type: "object" };

test("a tool that would make clients refuse the whole list is left out, with the reason", () => {
  const list = new EntryList();
  const odd = [
    { name: "title", inputSchema, title: { tag: "b" } },
    { name: "description", inputSchema, description: 5 },
    { name: "schema", inputSchema: { type: "array" } },
    { name: "output", inputSchema, outputSchema: "text" },
    { name: "icons", inputSchema, icons: {} },
    { inputSchema },
    null,
  ];
  const good = { name: "good", inputSchema, title: "Good", further: { of: "a later revision" } };
  list.add([...odd, good]);
  expect(list.entries).toEqual([good]);
  expect(list.omissions).toHaveLength(odd.length);
  expect(list.omissions[0]).toMatch(/^"title" is not read: title: /);
  expect(list.omissions[5]).toBe("A tool is not read: it has no name.");
});

test("null counts as absent, and an odd hint is dropped alone", () => {
  const list = new EntryList();
  list.add([
    {
      name: "a",
      title: null,
      description: null,
      inputSchema: { type: "object", required: null, properties: { a: { default: null } } },
      outputSchema: null,
      annotations: { readOnlyHint: "true", idempotentHint: true, destructiveHint: null, further: 1 },
      execution: { taskSupport: null },
      icons: null,
      _meta: null,
    },
  ]);
  expect(list.omissions).toEqual([]);
  expect(list.entries).toEqual([
    {
      name: "a",
      inputSchema: { type: "object", properties: { a: { default: null } } },
      annotations: { idempotentHint: true, further: 1 },
      execution: {},
    },
  ]);
  const resources = new EntryList("resource");
  const annotations = { priority: 5, audience: ["user"], lastModified: "yesterday" };
  resources.add([{ name: "b", uri: "acme://b", mimeType: null, size: null, annotations }]);
  expect(resources.entries).toEqual([{ name: "b", uri: "acme://b", annotations: { audience: ["user"] } }]);
  const prompts = new EntryList("prompt");
  prompts.add([{ name: "c", arguments: [{ name: "d", description: null, required: null }] }]);
  expect(prompts.entries).toEqual([{ name: "c", arguments: [{ name: "d" }] }]);
});

test("an output schema that clients cannot compile is left out alone, with the reason", async () => {
  const list = new EntryList();
  const schemas = {
    reference: { type: "object", properties: { a: { $ref: "#/$defs/missing" } } },
    remote: { type: "object", properties: { a: { $ref: "https://acme.example/schema.json" } } },
    pattern: { type: "object", properties: { a: { type: "string", pattern: "(?P<name>x)" } } },
    draft: { $schema: "http://json-schema.org/draft-04/schema#", type: "object" },
    limit: { type: "object", properties: { a: { type: "number", minimum: 1, exclusiveMinimum: true } } },
    good: { type: "object", properties: { a: { type: "string", format: "of our own" } } },
  };
  list.add(Object.entries(schemas).map(([name, outputSchema]) => ({ name, inputSchema, outputSchema })));
  await list.checkOutputSchemas();
  expect(list.entries.map(({ name, outputSchema }) => [name, outputSchema !== undefined])).toEqual(
    Object.keys(schemas).map((name) => [name, name === "good"]),
  );
  expect(list.omissions).toHaveLength(5);
  expect(list.omissions[0]).toMatch(/^"reference" is listed without its output schema, which clients cannot compile: /);
});
