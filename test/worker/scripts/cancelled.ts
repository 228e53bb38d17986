import * as z from "zod";
import { DAY, defineJob, SECOND } from "../../../core/index.ts";

const args = z.object({ n: z.string(), how: z.string().optional() });

/** Books a flight and waits; what it does is written to a file, and undone there. */
export const booking = defineJob({ kind: "booking", args, id: ({ n }) => n, deadline: DAY });
/** Its clean-up has little time. */
export const hasty = defineJob({ kind: "hasty", args, id: ({ n }) => n, deadline: DAY, cleanup: { for: 3 * SECOND } });
/** It has little time in all, and more for its clean-up. */
export const brief = defineJob({
  kind: "brief",
  args,
  id: ({ n }) => n,
  deadline: 4 * SECOND,
  cleanup: { for: 30 * SECOND },
});
