import * as z from "zod";
import type { DurablePromise } from "./resonate/store.ts";

/** What a caller is told about a job. */
export const JobStatus = z.enum(["running", "complete", "failed", "cancelled", "timed_out", "not_found"]);
export type JobStatus = z.infer<typeof JobStatus>;

export const JobView = z.object({
  job_name: z.string(),
  status: JobStatus,
  result: z.unknown().optional().describe("What the job produced, when complete."),
  error: z.string().optional().describe("Why there is no result, for every status but running and complete."),
  started_at: z.string().optional().describe("ISO 8601, UTC."),
  finished_at: z.string().optional().describe("ISO 8601, UTC."),
});
export type JobView = z.infer<typeof JobView>;

/** What a tool that starts one job and waits for it answers with. */
export const JobOutput = JobView.extend({
  note: z.string().optional().describe("How to go on, while the job is running."),
});

const STATUS = {
  pending: "running",
  resolved: "complete",
  rejected: "failed",
  rejected_canceled: "cancelled",
  rejected_timedout: "timed_out",
} as const;

/** Whether a promise ended without a result, so that a new start may make the next generation. */
export function endedWithoutResult(promise: DurablePromise): boolean {
  return promise.state !== "pending" && promise.state !== "resolved";
}

export function statusOf(promise: DurablePromise): JobStatus {
  return STATUS[promise.state];
}

export function viewOf(name: string, promise: DurablePromise | undefined): JobView {
  if (!promise) return notFound(name);
  const view: JobView = {
    job_name: name,
    status: statusOf(promise),
    started_at: new Date(promise.createdAt).toISOString(),
  };
  if (promise.settledAt !== undefined) view.finished_at = new Date(promise.settledAt).toISOString();
  switch (promise.state) {
    case "resolved":
      view.result = promise.value;
      break;
    case "rejected":
      view.error = promise.value instanceof Error ? promise.value.message : String(promise.value ?? "no reason given");
      break;
    case "rejected_canceled":
      view.error = "The job was cancelled. Starting it again makes a new attempt.";
      break;
    case "rejected_timedout":
      view.error = "The job did not finish before its deadline. Starting it again makes a new attempt.";
      break;
  }
  return view;
}

function notFound(name: string): JobView {
  return {
    job_name: name,
    status: "not_found",
    error: "No job has this name. Pass the name exactly as the tool that started the job returned it.",
  };
}
