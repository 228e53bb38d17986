/** `cancel_job`: ends jobs. */
import * as z from "zod";
import { type DurablePromise, JobStatus } from "../../core/jobs/index.ts";
import { builtInTool, costOf, jobNames, MAX_ANSWER } from "../../core/tools/index.ts";
import { newerOf } from "./job-views.ts";

export const cancelJob = builtInTool({
  name: "cancel_job",
  title: "Cancel jobs",
  description: "Stop jobs for good. Finished ones stay; one that others started too continues for them.",
  input: z.object({ job_names: jobNames }),
  output: z.object({
    cancelled: z.array(z.string()).describe("Stopped now, or before."),
    given_up: z.array(z.string()).optional().describe("Going on, but only for others who started them too."),
    already_finished: z.array(z.string()).describe("Had ended by itself before it could be stopped."),
    not_found: z.array(z.string()).describe("No such job, or none that you started."),
    newer: z
      .record(z.string(), z.object({ job_name: z.string(), status: JobStatus }))
      .optional()
      .describe("Newer attempts at jobs that had ended, not touched: cancel those by their own names."),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ job_names }, { store }) {
    const cancellations = await Promise.all(job_names.map((name) => store.cancel(name)));
    const outcomes = Object.groupBy(job_names, (_name, i) => outcomeOf(cancellations[i]?.promise));
    // A job that has ended just now has no newer attempt.
    const before = cancellations.flatMap((cancellation) =>
      cancellation && !cancellation.isOurs ? [cancellation.promise] : [],
    );
    const newer = (
      await Promise.all(before.map(async (promise) => ({ name: promise.name, ...(await newerOf(store, promise)) })))
    ).flatMap(({ name, newer }) => (newer ? [[name, newer] as const] : []));
    // Very long names may not fit; the outcomes always do.
    while (newer.length > 0 && costOf([outcomes, newer]) > MAX_ANSWER - 1_000) newer.pop();
    return {
      cancelled: [],
      already_finished: [],
      not_found: [],
      ...outcomes,
      ...(newer.length > 0 && { newer: Object.fromEntries(newer) }),
    };
  },
});

type Outcome = "cancelled" | "given_up" | "already_finished" | "not_found";

function outcomeOf(promise: DurablePromise | undefined): Outcome {
  if (!promise) return "not_found";
  if (promise.state === "pending") return "given_up";
  return promise.state === "rejected_canceled" ? "cancelled" : "already_finished";
}
