import { expect, test } from "vitest";
import { chooseTools, instructionsIn, type ListedTool } from "./snapshot.ts";

const tool = (more: Partial<ListedTool> = {}): ListedTool => ({
  name: "report",
  inputSchema: { type: "object" },
  ...more,
});

test("a server's description of a tool is listed unchanged, up to a size limit", () => {
  const fullTool = tool({ title: "Report", icons: [{ src: "https://acme.example/a.png" }], _meta: { a: 1 } });
  expect(chooseTools({ tools: [fullTool] }, {})).toEqual({ tools: [fullTool], omissions: [] });
  const [long] = chooseTools({ tools: [tool({ description: "x".repeat(100_000) })] }, {}).tools;
  expect(long?.description).toBe(`${"x".repeat(8_000)}…`);
  const instructions = "x".repeat(100_000);
  const server = { name: "acme", version: "1" };
  const lists = { prompts: [], resources: [], resourceTemplates: [] };
  const snapshot = { server, revision: "2026-07-28", resources: false, tools: [], lists, offers: [], instructions };
  expect(instructionsIn(snapshot)).toHaveLength(4_000);
});

test.each([
  ["a name that clients reject", tool({ name: "a b" }), /its name/],
  ["a schema that is too large", tool({ inputSchema: { type: "object", title: "x".repeat(64_000) } }), /64000/],
  ["arguments that are not an object", tool({ inputSchema: { type: "array" } }), /not an object/],
])("a tool with %s is left out, with the reason", (_what, wrong, reason) => {
  const { tools, omissions } = chooseTools({ tools: [wrong, tool()] }, {});
  expect(tools).toEqual([tool()]);
  expect(omissions).toEqual([{ name: wrong.name, reason: expect.stringMatching(reason) }]);
});

test("the first 500 tools of a server are passed on, and the others are reported by name", () => {
  const tools = Array.from({ length: 501 }, (_, i) => tool({ name: `report_${i}` }));
  expect(chooseTools({ tools }, {}).tools).toHaveLength(500);
  expect(chooseTools({ tools }, {}).omissions).toEqual([
    { name: "report_500", reason: expect.stringContaining("500") },
  ]);
});
