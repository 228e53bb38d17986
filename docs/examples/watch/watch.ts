import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

export const watch = defineDurableTool({
  name: "watch_stock",
  title: "Watch a stock",
  description: "Checks each hour how many of an article are left, and reports changes, for up to a year.",
  input: z.object({
    article: z.string().min(1).max(40).describe("The article."),
    days: z.int().min(1).max(365).default(365).describe("For how many days, 1 to 365."),
    day: z.int().min(0).default(0).describe("Leave it out: the current day of the watch."),
    last: z.int().optional().describe("Leave it out: the stock at the last look."),
  }),
  output: z.object({ left: z.int() }),
  id: ({ article }) => article,
  otherArguments: "accept",
  deadline: 366 * DAY,
});
