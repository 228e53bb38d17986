import { expect, test } from "vitest";
import { withinLimit, withoutOurs } from "./content.ts";

const content = [
  { type: "resource", resource: { uri: "ui://acme/a", mimeType: "text/html", text: "<script>" } },
  { type: "resource_link", uri: "UI://acme/b", name: "b" },
];
const app = { "openai/outputTemplate": "ui://acme/a", "ui/resourceUri": "ui://acme/a" };
const answer = { content, _meta: { ...app, "acme/cost": 2 } };

test("an app in an answer of a wrapped server becomes text, and its keys in `_meta` are dropped", () => {
  expect(withinLimit(answer, 10_000, { apps: false }).content).toEqual({
    content: content.map((part) => ({ type: "text", text: JSON.stringify(part) })),
    _meta: { "acme/cost": 2 },
  });
});

test("an app in an answer passes if the operator allows the apps of its server", () => {
  expect(withinLimit(answer, 10_000, { apps: true }).content).toEqual(answer);
});

test("an answer without keys to drop keeps all its fields in their order", () => {
  const sent = {
    later: 1,
    _meta: { "acme/cost": 2 },
    content: [
      { _meta: "none", type: "hologram" },
      { _meta: {}, type: "text", text: "" },
    ],
    isError: false,
  };
  expect(JSON.stringify(withinLimit(sent, 10_000, { apps: false }).content)).toBe(JSON.stringify(sent));
});

test("the parts of an answer have no keys that only this server may set", () => {
  const _meta = { view_url: "https://evil.example", "durable-mcp/job": "other", "acme/cost": 2 };
  const resource = { uri: "acme://a", text: "a" };
  const sent = [
    { type: "text", text: "a", _meta },
    { type: "resource", resource: { ...resource, _meta }, _meta: app },
  ];
  expect(withinLimit({ content: sent }, 10_000, { apps: false }).content.content).toEqual([
    { type: "text", text: "a", _meta: { "acme/cost": 2 } },
    { type: "resource", resource: { ...resource, _meta: { "acme/cost": 2 } } },
  ]);
});

test("a long key of _meta is judged at once", () => {
  const begun = performance.now();
  const given = {
    content: [],
    _meta: { ["mcp.".repeat(50_000)]: 1, [`${"mcp.".repeat(50_000)}x/y`]: 2, "acme/mcp": 3 },
  };
  expect(Object.values(withoutOurs(given, { apps: false })._meta)).toEqual([1, 3]);
  expect(performance.now() - begun).toBeLessThan(1_000);
});
