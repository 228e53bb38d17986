import * as z from "zod";
import { defineJob, HOUR } from "../../core/index.ts";

export const interview = defineJob({
  kind: "interview",
  args: z.object({ name: z.string() }),
  id: ({ name }) => name,
  deadline: HOUR,
});
