import * as z from "zod";
import { defineDurableTool, HOUR } from "../../../core/index.ts";

export const crawl = defineDurableTool({
  name: "crawl",
  title: "Crawl a web site",
  description: "Follows the links of a web site, and tells which of them lead nowhere.",
  input: z.object({
    start: z.string().startsWith("/").describe("The path to begin with."),
    pages: z.int().min(1).max(500).default(500).describe("How many pages at most, 1 to 500."),
  }),
  output: z.object({ pages: z.int(), broken: z.array(z.string()) }),
  id: ({ start, pages }) => `${start}_${pages}`,
  deadline: 6 * HOUR,
});
