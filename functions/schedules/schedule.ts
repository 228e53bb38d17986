/** Schedules. A schedule is a job without a worker: the object of its caller fires it, see `functions/caller/schedules/`. */
import * as z from "zod";
import { defineJob, type Job } from "../../core/definitions/job.ts";
import { When } from "./when.ts";

/** How long a schedule lasts at most, in milliseconds: ten years. */
const LONGEST = 10 * 366 * 86_400_000;

export const Schedule = z.object({
  name: z.string(),
  /** The tool that it calls, with these arguments. */
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  when: When,
  /** Which firing of those that nobody was there for is made up for. */
  missed: z.enum(["skip", "last"]),
  /** What happens while the job of the last firing still runs. */
  overlap: z.enum(["skip", "queue", "allow"]),
});
export type Schedule = z.infer<typeof Schedule>;

const definition = defineJob({
  kind: "schedule",
  args: Schedule,
  id: ({ name }) => name,
  deadline: LONGEST,
});

export const schedule: Job<Schedule> = { ...definition, runs: "edge" };
