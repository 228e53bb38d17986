import { DAY, defineDurableTool, MINUTE } from "durable-mcp-edge";
import * as z from "zod";

export const waitForSite = defineDurableTool({
  name: "wait_for_site",
  title: "Wait for a web site",
  description: "Waits until a web site answers, for up to a day.",
  input: z.object({ url: z.url().describe("The site's URL.") }),
  output: z.object({ url: z.string(), status: z.number() }),
  id: ({ url }) => url, // one job for each site: a second call finds the first
  deadline: DAY,
  freshFor: MINUTE, // a call more than a minute after the end checks again
});
