import { expect, test } from "vitest";
import { chosen, instructionsIn, type ListedTool } from "./snapshot.ts";

const tool = (more: Partial<ListedTool> = {}): ListedTool => ({
  name: "report",
  inputSchema: { type: "object" },
  ...more,
});

test("what a server says of a tool is passed on as it is, up to a bound", () => {
  const whole = tool({ title: "Report", icons: [{ src: "https://acme.example/a.png" }], _meta: { a: 1 } });
  expect(chosen({ tools: [whole] }, {})).toEqual({ tools: [whole], left: [] });
  const [long] = chosen({ tools: [tool({ description: "x".repeat(100_000) })] }, {}).tools;
  expect(long?.description).toBe(`${"x".repeat(8_000)}…`);
  const instructions = "x".repeat(100_000);
  const server = { name: "acme", version: "1" };
  const snapshot = { server, revision: "2026-07-28", resources: false, tools: [], instructions };
  expect(instructionsIn(snapshot)).toHaveLength(4_000);
});

test.each([
  ["a name that clients do not take", tool({ name: "a b" }), /its name/],
  ["a schema that is too large", tool({ inputSchema: { type: "object", title: "x".repeat(64_000) } }), /64000/],
  ["arguments that are no object", tool({ inputSchema: { type: "array" } }), /not an object/],
])("a tool with %s is left out, and the reason is said", (_what, wrong, reason) => {
  const { tools, left } = chosen({ tools: [wrong, tool()] }, {});
  expect(tools).toEqual([tool()]);
  expect(left).toEqual([{ name: wrong.name, reason: expect.stringMatching(reason) }]);
});

test("so many tools of one server are passed on, and the others are named", () => {
  const tools = Array.from({ length: 501 }, (_, i) => tool({ name: `report_${i}` }));
  expect(chosen({ tools }, {}).tools).toHaveLength(500);
  expect(chosen({ tools }, {}).left).toEqual([{ name: "report_500", reason: expect.stringContaining("500") }]);
});
