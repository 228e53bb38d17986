import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

export const nightly = defineDurableTool({
  name: "nightly_report",
  title: "Nightly report",
  description: "Writes a report each night at three o'clock, by the clocks of a place.",
  input: z.object({
    from: z.iso.date().describe("The first night, such as 2027-03-27."),
    nights: z.int().min(1).max(31).describe("How many nights, 1 to 31."),
    timezone: z.string().default("Europe/Berlin").describe("Such as Europe/Berlin."),
  }),
  output: z.object({ reports: z.array(z.object({ at: z.iso.datetime(), rows: z.int() })) }),
  id: ({ from, nights, timezone }) => `${from}_${nights}_${timezone}`,
  // Counted from the first night, which may be long after the job's start.
  deadline: ({ from, nights }, now) => Math.max(now, Date.parse(from)) + (nights + 1) * DAY,
});
