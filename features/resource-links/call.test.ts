import { expect, test } from "vitest";
import { ANSWER_SUBJECT, type ToolAnswer } from "../../core/tools/index.ts";
import type { ResourceLink } from "../../core/tools/results.ts";
import { resourceLinks } from "./call.ts";

const link: ResourceLink = {
  type: "resource_link",
  uri: "job://report_1",
  name: "report_1",
  mimeType: "application/json",
  size: 60_000,
};
const text = { type: "text" as const, text: "a summary" };

const passed = (answer: ToolAnswer, revision: string) => {
  const headers = { "mcp-protocol-version": revision };
  const call = { request: { scope: { request: new Request("https://edge.example.com/mcp", { headers }) } } };
  return resourceLinks.call?.({} as never)?.(call as never, async () => answer);
};

test.each([
  ["2025-06-18", [text, link]],
  ["2025-11-25", [text, link]],
  ["2026-07-28", [text, link]],
  ["2025-03-26", [text]],
])("for a client of %s, an answer that summarizes a result has the content %j", async (revision, content) => {
  const answer = { content: [text], [ANSWER_SUBJECT]: { links: [link] } };
  expect(await passed(answer, revision)).toMatchObject({ content });
});

test("an answer without summaries stays as it is", async () => {
  const answer = { content: [text] };
  expect(await passed(answer, "2025-11-25")).toBe(answer);
});
