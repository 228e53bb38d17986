import { expect, test } from "vitest";
import type { Tool } from "../../core/tools/index.ts";
import { aboutOf } from "./about.ts";
import type { Pages } from "./sessions.ts";

const toolOf = (name: string, description: string) =>
  ({ listing: { name, description, inputSchema: { type: "object", properties: { a: {} } } } }) as unknown as Tool;

const pagesOf = (tools: Tool[]) =>
  ({
    site: { tools, identity: { info: { name: "test" } } },
    config: { auth: { AUTH_MODE: "none" } },
  }) as unknown as Pages;

test("anybody gets the description of the tools, of bounded size", () => {
  const tools = Array.from({ length: 500 }, (_, n) => toolOf(`tool${n}`, "x".repeat(8_000)));
  const text = aboutOf(pagesOf(tools));
  expect(text.length).toBeLessThan(300_000);
  const { tools: described } = JSON.parse(text);
  expect(described).toHaveLength(500);
  expect(described[0]).toMatchObject({ name: "tool0", inputSchema: { properties: { a: {} } } });
  expect(described[499]).toEqual({ name: "tool499", inputSchema: { type: "object" } });
});

test("the description is made once", () => {
  const pages = pagesOf([toolOf("one", "does something")]);
  const first = aboutOf(pages);
  Object.assign(pages.site, { tools: [] });
  expect(aboutOf(pages)).toBe(first);
});
