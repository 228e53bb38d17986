import * as z from "zod";
import { DAY, defineDurableTool } from "../../../core/index.ts";

export const release = defineDurableTool({
  name: "release",
  title: "Release a version",
  description: "Releases a version, once the user has approved it.",
  input: z.object({
    version: z
      .string()
      .regex(/^[\d.]+$/)
      .describe("A version number, such as 1.2."),
  }),
  output: z.object({ version: z.string(), released_at: z.iso.datetime() }),
  id: ({ version }) => version,
  deadline: 14 * DAY, // the time to answer
});
