import * as z from "zod";
import { defineDurableTool, HOUR, hashed } from "../../../core/index.ts";

export const countWords = defineDurableTool({
  name: "count_words",
  title: "Count words",
  description: "Counts the words of a text.",
  input: z.object({ text: z.string().describe("The text.") }),
  output: z.object({ words: z.int().min(1) }),
  id: ({ text }) => hashed(text),
  deadline: HOUR,
  group: "words",
});
