import * as z from "zod";
import { defineJob, HOUR } from "../../functions/jobs/index.ts";

export const interview = defineJob({
  func: "interview",
  args: z.object({ name: z.string() }),
  name: ({ name }) => `interview_${name}`,
  owns: (name) => name.startsWith("interview_"),
  deadline: (_args, now) => now + HOUR,
  keepsJournal: true,
});
