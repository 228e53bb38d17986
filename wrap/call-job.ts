/** The job of one call to a wrapped server. */
import * as z from "zod";
import { DAY } from "../core/definitions/context.ts";
import { defineJob, type Job } from "../core/definitions/job.ts";
import { readAnswersBy } from "../core/tools/answers.ts";
import * as content from "../core/tools/content.ts";

/** The arguments of the job. */
export const CallArgs = z.object({
  /** The server's name for the tool; {@link READ} for a resource, whose `uri` is the argument. */
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  /** The caller's `_meta`, without what is between it and the edge. */
  meta: z.record(z.string(), z.unknown()).optional(),
  /** Identifies the call among those of the tool. */
  key: z.string(),
  /** Whether the call is sent at most once, by the policy at the start of the job. */
  once: z.boolean(),
  /** How long the result answers further calls with the same arguments, in milliseconds. */
  fresh_for: z.number().optional(),
});
export type CallArgs = z.infer<typeof CallArgs>;

/** Replaces the tool's name in a job that reads a resource. */
export const READ = "resources-read";

/** Begins the reason of a job whose call the server has certainly not done: the call may be repeated. */
export const NOT_DONE = "Nothing was done";

/** How long a job may take; questions wait meanwhile, and the server's time limit is shorter. */
const DEADLINE = 7 * DAY;

readAnswersBy(content);

export function callJob(kind: string, prefix: string, shared: boolean): Job<CallArgs> {
  return defineJob<CallArgs>({
    kind,
    prefix,
    args: CallArgs,
    id: ({ tool, key }) => `${tool}.${key}`,
    otherArguments: "accept",
    deadline: DEADLINE,
    shared,
    answers: true,
    runs: "container",
    // A repeat of a non-repeatable call gets the outcome of the first, even a failure.
    restarts: (reason, { once }) => !once || reason?.includes(NOT_DONE) === true,
    freshFor(result, { once, fresh_for }) {
      if (!once && (result as { isError?: boolean } | undefined)?.isError === true) return 0;
      return fresh_for;
    },
  });
}
