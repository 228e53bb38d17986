import { expect, test } from "vitest";
import type { CallResult, ToolAnswer } from "../../core/tools/index.ts";
import { textOnce } from "./call.ts";

const passed = (answer: CallResult, url: string) => {
  const call = { request: { scope: { request: new Request(url) } } };
  return textOnce.call?.({} as never)?.(call as never, async () => answer);
};

const answer: ToolAnswer = {
  structuredContent: { days: 30 },
  content: [
    { type: "text", text: '{"days":30}' },
    { type: "text", text: "a remark" },
  ],
};

test("the text that repeats the structured content is left out for clients that ask for it, and no other text", async () => {
  for (const query of ["text=once", "text=once&x=1", "x&text=once"])
    expect(await passed(answer, `https://edge.example.com/mcp?${query}`)).toEqual({
      ...answer,
      content: [
        { type: "text", text: "In structuredContent." },
        { type: "text", text: "a remark" },
      ],
    });
});

test("other clients get both", async () => {
  expect(await passed(answer, "https://edge.example.com/mcp")).toBe(answer);
});
