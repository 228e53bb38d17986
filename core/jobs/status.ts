import * as z from "zod";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { DurablePromise } from "./durable-promise.ts";

/**
 * What a caller is told about a job: one of six words, as a zod schema.
 *
 * @example
 * const status = JobStatus.parse("running");
 */
export const JobStatus = z.enum(["running", "complete", "failed", "cancelled", "timed_out", "not_found"]);
export type JobStatus = z.infer<typeof JobStatus>;

export const WaitingFor = z.object({
  question: z.string().describe("Its key."),
  message: z.string(),
  answered_by: z.enum(["user", "anyone"]).describe("anyone: answer_question takes the answer."),
  answer_schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("JSON Schema of the answer, where anyone may give it."),
  until: z.string().describe("When the job ends without an answer, ISO 8601, UTC."),
});

/** Any JSON, with the schema that clients are shown. */
export const Json = z.unknown().meta({ type: ["object", "array", "string", "number", "boolean", "null"] });
/** Stands for a result that is too large for an answer. */
export const ResultSummary = z
  .object({
    characters: z.number().describe("The length of the result as JSON text; of the fields asked for."),
    fields: z.record(z.string(), z.number()).optional().describe("The length of each of its fields."),
    offset: z.number().describe("Where part begins."),
    part: z.string().describe("A part of the result as JSON text."),
    next_offset: z.number().optional().describe("Where the rest begins; absent when there is none."),
    uri: z.string().describe("The resource that is the result."),
  })
  .describe("In place of a result that is too large for the answer.");
export type ResultSummary = z.infer<typeof ResultSummary>;

export const Partial = z
  .object({
    values: z.array(Json),
    next_offset: z.number().describe("partial_from of the next call."),
    more: z.literal(true).optional().describe("There are more now."),
  })
  .describe("Partial results, in order.");
export type Partial = z.infer<typeof Partial>;

export const JobView = z.object({
  job_name: z.string(),
  status: JobStatus,
  result: Json.optional().describe("What the job produced, when complete."),
  summary: ResultSummary.optional(),
  error: z.string().optional().describe("Why there is no result, for every status but running and complete."),
  partial: Partial.optional(),
  doing: z.string().optional().describe("What it is doing, while it is running."),
  run: z.number().optional().describe("The number of its current run, where it has several."),
  newer: z
    .object({ job_name: z.string(), status: JobStatus })
    .optional()
    .describe("The attempt that was started after this one had ended."),
  cleanup: z.enum(["running", "done", "failed"]).optional().describe("What a cancelled job still does, or did."),
  resumed_from: z.string().optional().describe("The attempt whose finished steps this one did not repeat."),
  began_anew: z.string().optional().describe("Why an attempt that was to resume began from the start."),
  waiting_for: z.array(WaitingFor).optional().describe("What it waits to be told, while it is running."),
  started_at: z.string().optional().describe("ISO 8601, UTC."),
  finished_at: z.string().optional().describe("ISO 8601, UTC."),
});
export type JobView = z.infer<typeof JobView>;

/** The output of a tool that starts one job and waits for it. */
export const JobOutput = JobView.extend({
  note: z.string().optional().describe("How to continue, while the job is running."),
  view_url: z.string().optional().describe("Its page, for the user to look at."),
});

const STATUS_OF_STATE = {
  pending: "running",
  resolved: "complete",
  rejected: "failed",
  rejected_canceled: "cancelled",
  rejected_timedout: "timed_out",
} as const;

/** Whether a job ended without a result, so that a new start may make the next generation. */
export function endedWithoutResult(promise: DurablePromise): boolean {
  return promise.state !== "pending" && promise.state !== "resolved";
}

/** Whether a job may have reported or asked something. A job with an expected end reports nothing before it. */
export function mayShow({ state, job, args }: DurablePromise, now: number): boolean {
  return state === "pending" && !((job.expectedAt?.(args) ?? 0) > now);
}

export function statusOf(promise: Pick<DurablePromise, "state">): JobStatus {
  return STATUS_OF_STATE[promise.state];
}

/** The promise state that belongs to a status; undefined for `not_found`. */
export function stateOf(status: JobStatus): DurablePromise["state"] | undefined {
  return (Object.keys(STATUS_OF_STATE) as DurablePromise["state"][]).find((state) => STATUS_OF_STATE[state] === status);
}

export function viewOf(
  name: string,
  promise: Pick<DurablePromise, "state" | "value" | "createdAt" | "settledAt" | "resumption" | "cleanup"> | undefined,
): JobView {
  if (!promise) return notFound(name);
  const view: JobView = {
    job_name: name,
    status: statusOf(promise),
    started_at: new Date(promise.createdAt).toISOString(),
  };
  if (promise.settledAt !== undefined) view.finished_at = new Date(promise.settledAt).toISOString();
  const { resumption, cleanup } = promise;
  if (cleanup?.state === "pending") view.cleanup = "running";
  else if (cleanup?.state === "resolved" && (cleanup.value as { steps?: number } | undefined)?.steps)
    view.cleanup = "done";
  else if (cleanup && cleanup.state !== "resolved") view.cleanup = "failed";
  if (resumption)
    Object.assign(view, "from" in resumption ? { resumed_from: resumption.from } : { began_anew: resumption.anew });
  switch (promise.state) {
    case "resolved":
      view.result = promise.value;
      break;
    case "rejected":
      view.error = promise.value instanceof Error ? promise.value.message : String(promise.value ?? "no reason given");
      break;
    case "rejected_canceled":
      view.error = "The job was cancelled. Starting it again makes a new attempt, or finds a newer one.";
      if (view.cleanup === "failed") {
        const reason = cleanup?.value instanceof Error ? cleanup.value.message : "no worker did it in time";
        view.error = `The job was cancelled, and its clean-up failed: ${reason}. Starting it again makes a new attempt.`;
      }
      break;
    case "rejected_timedout":
      view.error =
        "The job did not finish before its deadline. Starting it again makes a new attempt, or finds a newer one.";
      break;
  }
  return view;
}

/** The view of a job whose promise cannot be decrypted: whether it runs is known nevertheless. */
export function undecryptableView(name: string, { createdAt, settledAt, ...record }: PromiseRecord): JobView {
  const state = record.state === "resolved" ? "rejected" : record.state;
  const value =
    "Its result cannot be read: it is encrypted with a key that this server does not have, was changed, or is unencrypted. " +
    "It is not lost, but starting the job again does not help until the operator of this server has looked into it.";
  return viewOf(name, { state, value, createdAt, settledAt });
}

function notFound(name: string): JobView {
  return {
    job_name: name,
    status: "not_found",
    error: "No job has this name. Pass the name exactly as the tool that started the job returned it.",
  };
}
