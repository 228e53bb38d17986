/** Schedules. A schedule is a job without a worker: the object of its caller fires it, see `schedules.ts`. */
import * as z from "zod";
import { defineJob, type Job } from "../../core/author/index.ts";

/** How long a schedule lasts at most: ten years. */
export const MAX_DURATION_MS = 10 * 366 * 86_400_000;

/** When a schedule fires: by exactly one of `cron`, `every` and `at`. */
export const When = z.object({
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron: z.string().optional(),
  /** Of `cron`, or of an `at` without an offset, by an IANA name. Default for cron: UTC. */
  timezone: z.string().optional(),
  /** In seconds, counted from `from`. */
  every: z.number().optional(),
  /** Milliseconds since the epoch. */
  from: z.number().optional(),
  /** Once, ISO 8601. */
  at: z.string().optional(),
});
export type When = z.infer<typeof When>;

export const Schedule = z.object({
  name: z.string(),
  /** The tool that it calls, with these arguments. */
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  when: When,
  /** Whether the last of the missed firings is made up. */
  missed: z.enum(["skip", "last"]),
  /** What happens while the job of the last firing still runs. */
  overlap: z.enum(["skip", "queue", "allow"]),
});
export type Schedule = z.infer<typeof Schedule>;

const definition = defineJob({
  kind: "schedule",
  args: Schedule,
  id: ({ name }) => name,
  deadline: MAX_DURATION_MS,
});

export const schedule: Job<Schedule> = { ...definition, runs: "edge" };
