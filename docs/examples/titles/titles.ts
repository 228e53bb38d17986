import * as z from "zod";
import { defineDurableTool, HOUR, hashed } from "../../../core/index.ts";

export const titles = defineDurableTool({
  name: "page_titles",
  title: "Titles of web pages",
  description: "Fetches web pages and tells their titles.",
  input: z.object({ urls: z.array(z.url()).min(1).max(50).describe("1 to 50 URLs.") }),
  output: z.object({ titles: z.array(z.string()) }),
  id: ({ urls }) => hashed(urls), // a list would be too long for a name
  deadline: HOUR,
});
