/** The job of a call that is passed on to a wrapped server. */
import * as z from "zod";
import { DAY } from "../core/definitions/context.ts";
import { defineJob, type Job } from "../core/definitions/job.ts";

/** What a job of a wrapped server is to do. */
export const CallArgs = z.object({
  /** As the server calls it; {@link READ} for a resource, whose `uri` is the argument. */
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  /** What tells this call from others. */
  key: z.string(),
  /** Whether it is sent at most once: as it was when the job was started. */
  once: z.boolean(),
  /** For how long a result answers calls with the same arguments, in milliseconds. */
  fresh_for: z.number().optional(),
});
export type CallArgs = z.infer<typeof CallArgs>;

/** In place of a tool's name, in a job that reads a resource. */
export const READ = "resources-read";

/** In the reason of a job whose call the server has certainly not done: it may be made again. */
export const NOT_DONE = "Nothing was done";

/** How long a job may take: the server's time limit comes before, and questions wait meanwhile. */
const DEADLINE = 7 * DAY;

export function callJob(kind: string, prefix: string, shared: boolean): Job<CallArgs> {
  return defineJob<CallArgs>({
    kind,
    prefix,
    args: CallArgs,
    id: ({ tool, key }) => `${tool}.${key}`,
    deadline: DEADLINE,
    shared,
    answers: true,
    runs: "container",
    // A repeat of a call that may not be repeated finds how the first one ended, whatever that was.
    restarts: (reason, { once }) => !once || reason?.includes(NOT_DONE) === true,
    freshFor(result, { once, fresh_for }) {
      if (!once && (result as { isError?: boolean } | undefined)?.isError === true) return 0;
      return fresh_for;
    },
  });
}
