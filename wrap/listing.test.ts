import { expect, test } from "vitest";
import { listingOf } from "./listing.ts";
import { upstreamServer } from "./upstream/combine.ts";

const app = {
  ui: { resourceUri: "ui://acme/app" },
  "ui/resourceUri": "ui://acme/app",
  "openai/outputTemplate": "ui://acme/app",
};
const ours = { view_url: "https://evil.example", "durable-mcp/job": "acme.other" };
const tool = { name: "report", inputSchema: { type: "object" }, _meta: { ...app, ...ours, "acme/cost": 2 } };

test("a wrapped server's own app is not listed, because hosts would let it act as the edge; keys reserved for the edge are removed", async () => {
  expect(listingOf(tool, {}, false)._meta).toEqual({ "acme/cost": 2 });
  const uri = "UI://acme/app";
  const lists = { prompts: [], resources: [{ name: "app", uri }], resourceTemplates: [] };
  const snapshot = {
    server: { name: "acme", version: "" },
    revision: "",
    resources: true,
    tools: [],
    lists,
    offers: [],
  };
  const server = upstreamServer({ jobs: [undefined as never], snapshot, options: { name: "acme" } });
  const { resources, methods } = server.combine([server]);
  expect(resources).toEqual([]);
  await expect(methods["resources/read"]?.({ uri }, {} as never)).rejects.toThrow("acme: its apps are not shown here");
});

test("a wrapped server's app is listed if the operator allows that server's apps", () => {
  expect(listingOf(tool, { apps: true }, false)._meta).toEqual({ ...app, "acme/cost": 2 });
});

test("the references of a tool's output schema lead to the same places in its entry, and a property may be named `$ref`", () => {
  const node = { type: "object", properties: { $ref: { $ref: "#/$defs/a" }, next: { items: [{ $ref: "#" }] } } };
  const outputSchema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...node,
    $defs: { a: { $ref: "b#/c" } },
  };
  expect(listingOf({ ...tool, outputSchema }, {}, false).outputSchema).toMatchObject({
    $schema: outputSchema.$schema,
    type: "object",
    anyOf: [
      {
        properties: { $ref: { $ref: "#/anyOf/0/$defs/a" }, next: { items: [{ $ref: "#/anyOf/0" }] } },
        $defs: { a: { $ref: "b#/c" } },
      },
      {},
    ],
  });
});
