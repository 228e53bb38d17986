/** Names that the examples of the public modules use without a declaration. */
import * as z from "zod";
import { DAY, defineDurableTool, defineJob, implement, type Question } from "../../../core/index.ts";

/** The URL of a web page. */
export const url = process.env.EXAMPLE_URL ?? "http://127.0.0.1:9/";
export const urls = [url];

export async function titleOf(page: string): Promise<string> {
  const html = await (await fetch(page)).text();
  return /<title>([^<]*)/.exec(html)?.[1] ?? page;
}

export const question: Question = {
  message: "Go on?",
  requestedSchema: { type: "object", properties: { yes: { type: "boolean" } }, required: ["yes"] },
};

export const report = defineJob({ kind: "report", args: z.object({ day: z.iso.date() }), id: ({ day }) => day });

export const waitForSite = defineDurableTool({
  name: "wait_for_site",
  title: "Wait for a web site",
  description: "Waits until a web site answers, for up to a day.",
  input: z.object({ url: z.url().describe("The site's URL.") }),
  output: z.object({ url: z.string() }),
  id: ({ url }) => url,
  deadline: DAY,
});

export const waitForSiteRun = implement(waitForSite, async (_ctx, { url }) => ({ url }));
