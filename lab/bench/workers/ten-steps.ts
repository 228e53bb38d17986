import * as z from "zod";
import { defineJob, HOUR } from "../../../core/index.ts";

export const tenSteps = defineJob({
  kind: "ten_steps",
  args: z.object({ n: z.number() }),
  id: ({ n }) => n,
  deadline: HOUR,
});
