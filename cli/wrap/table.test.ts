import { expect, test } from "vitest";
import { CARD_TOOLS } from "../../features/cards/card.ts";
import { builtIn } from "../../functions/built-in.ts";
import { BUILT_IN_TOOL_NAMES, type Snapshot } from "../../wrap/snapshot.ts";
import { checkChosen, omissions, policyTable } from "./table.ts";

const snapshot = (...names: string[]): Snapshot => ({
  server: { name: "acme", version: "1" },
  revision: "2025-11-25",
  resources: false,
  tools: names.map((name) => ({ name, inputSchema: { type: "object" } })),
  lists: { prompts: [], resources: [], resourceTemplates: [] },
  offers: [],
});

test("a tool with the name of a built-in tool is left out, unless it gets a prefix", () => {
  expect([...BUILT_IN_TOOL_NAMES].toSorted()).toEqual(
    [...builtIn([]).map(({ name }) => name), ...CARD_TOOLS].toSorted(),
  );
  const there = snapshot("await_result", "echo");
  expect(omissions(there, { name: "acme" })).toEqual([expect.stringMatching(/"await_result" is left out: .*prefix/)]);
  expect(policyTable(there, { name: "acme" })).toHaveLength(2);
  expect(omissions(there, { name: "acme", prefix: "my" })).toEqual([]);
});

test("the second of two tools with the same name is left out, and a very long name is shortened", () => {
  const lines = omissions(snapshot("echo", "echo", "n".repeat(300)), { name: "acme" });
  expect(lines).toEqual([
    '"echo" is left out: another one of its tools is called so.',
    expect.stringMatching(/^"n{60}…" is left out: its name is not of up to 128 letters/),
  ]);
});

test("requested tools that do not exist are reported, and a server without a remaining tool is refused", () => {
  const there = snapshot("echo", "crawl");
  const options = { name: "acme", tools: ["crawl", "report_*"], policies: { ech: { repeatable: true } } };
  expect(omissions(there, options)).toEqual(['It has no tool "report_*".', 'It has no tool "ech".']);
  expect(() => checkChosen(there, options)).not.toThrow();
  expect(() => checkChosen(there, { name: "acme", tools: ["report_*"] })).toThrow("Its tools are echo, crawl.");
  expect(() => checkChosen(snapshot(), { name: "acme" })).toThrow("It has no tools.");
});

test("a tool that some hosts refuse is listed, and reported", () => {
  const there = snapshot("files.read", "n".repeat(65), "union", "echo");
  const tools = there.tools.map((tool) =>
    tool.name === "union" ? { ...tool, inputSchema: { type: "object", anyOf: [{ required: ["a"] }] } } : tool,
  );
  expect(omissions({ ...there, tools }, { name: "acme" })).toEqual([
    expect.stringMatching(/^"files\.read" is refused by some hosts: its name is not of up to 64 letters/),
    expect.stringMatching(/^"n{65}" is refused by some hosts/),
    '"union" is refused by some hosts: the schema of its arguments has anyOf at its root.',
  ]);
  expect(policyTable({ ...there, tools }, { name: "acme" })).toHaveLength(5);
});
