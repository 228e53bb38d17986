import * as z from "zod";
import { DAY, defineJob, SECOND } from "../../../core/index.ts";

const args = z.object({ n: z.string(), how: z.string().optional() });

/** Books a flight and waits. Each action, and what undoes it, is a line of a file. */
export const booking = defineJob({ kind: "booking", args, id: ({ n }) => n, deadline: DAY });
/** A booking that resumes when it is started again. */
export const resumed = defineJob({ kind: "resumed", args, id: ({ n }) => n, deadline: DAY, onRestart: "resume" });
/** A booking with little time for its clean-up. */
export const hasty = defineJob({ kind: "hasty", args, id: ({ n }) => n, deadline: DAY, cleanup: { for: 3 * SECOND } });
/** A booking with a short deadline, and more time for its clean-up. */
export const brief = defineJob({
  kind: "brief",
  args,
  id: ({ n }) => n,
  deadline: 4 * SECOND,
  cleanup: { for: 30 * SECOND },
});
