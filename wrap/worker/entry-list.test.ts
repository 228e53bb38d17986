import { expect, test } from "vitest";
import { EntryList } from "./entry-list.ts";

const inputSchema = { type: "object" };

test("a tool that would make clients refuse the whole list is left out, with the reason", () => {
  const list = new EntryList();
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
  expect(list.entries).toEqual([good]);
  expect(list.omissions).toHaveLength(odd.length);
  expect(list.omissions[0]).toMatch(/^"title" is not read: title: /);
  expect(list.omissions[2]).toMatch(/^"annotations" is not read: annotations\.readOnlyHint: /);
  expect(list.omissions[6]).toBe("A tool is not read: it has no name.");
});
