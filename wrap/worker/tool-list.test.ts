import { expect, test } from "vitest";
import { ToolList } from "./tool-list.ts";

const inputSchema = { type: "object" };

test("a tool that would make clients refuse the whole list is left out, with the reason", () => {
  const list = new ToolList();
  const odd = [
    { name: "title", inputSchema, title: { tag: "b" } },
    { name: "description", inputSchema, description: 5 },
    { name: "annotations", inputSchema, annotations: { readOnlyHint: "yes" } },
    { name: "schema", inputSchema: { type: "array" } },
    { name: "output", inputSchema, outputSchema: "text" },
    { name: "icons", inputSchema, icons: {} },
    { inputSchema },
    null,
  ];
  const good = { name: "good", inputSchema, title: "Good", further: { of: "a later revision" } };
  list.add([...odd, good]);
  expect(list.tools).toEqual([good]);
  expect(list.left).toHaveLength(odd.length);
  expect(list.left[0]).toMatch(/^"title" is not read: title: /);
  expect(list.left[2]).toMatch(/^"annotations" is not read: annotations\.readOnlyHint: /);
  expect(list.left[6]).toBe("A tool is not read: it has no name.");
});
