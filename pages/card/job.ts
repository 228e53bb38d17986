/** Access to jobs from a card, through the calls that its host makes for it. */
import type { View } from "../../core/author/index.ts";
import type { FeedEntry, JobView, Latest } from "../../core/jobs/index.ts";
import type { CallToolResult } from "../../core/tools/index.ts";
import type { FileSummary } from "../job/files.tsx";
import { readResult } from "../lib/read-result.ts";
import type { FormSchema } from "../lib/server.ts";
import type { Host } from "./host.ts";

/** A file of a job, with its download address if the deployment has one. */
export interface CardFile extends FileSummary {
  url?: string;
}

/** A job as the tool `job_card` describes it. */
export interface Job
  extends
    Pick<JobView, "job_name" | "status" | "error" | "doing" | "started_at">,
    Pick<FeedEntry, "progress" | "step"> {
  title?: string;
  /** How to show the result; `chart` is the address of the program that draws it, if it is a chart. */
  view?: View;
  chart?: string;
  partial?: Latest;
  questions?: { question: string; message: string; requestedSchema: FormSchema }[];
  arguments?: unknown;
  job_files?: CardFile[];
  newer?: string;
  view_url?: string;
}

export const wordsOf = ({ content }: Pick<CallToolResult, "content">): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");

/** Calls a tool. @throws {Error} with a message for people if the host or the tool refuses */
export async function call(host: Host, name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const answer = await host.request<CallToolResult>("tools/call", { name, arguments: args });
  if (answer.isError) throw new Error(wordsOf(answer));
  return (answer.structuredContent ?? {}) as Record<string, unknown>;
}

const MAX_PARTS = 40;

/** A job's result, or those of its fields that the job's view shows. @throws {ResultTooLarge | Error} if it cannot be read */
export const resultOf = (host: Host, job: string, view: View | undefined): Promise<unknown> =>
  readResult((args) => call(host, "probe_status", args), { job, fields: fieldsOf(view), maxParts: MAX_PARTS });

/** The fields of a result that a chart shows. */
function fieldsOf(view: View | undefined): string[] | undefined {
  if (view?.as !== "chart") return undefined;
  const paths = view.series.flatMap((series) => {
    const values = series.as === "band" ? [series.low, series.high] : [series.values];
    // The unit may be a path. If it is not, it selects nothing.
    return [...values, ...(series.unit === undefined ? [] : [series.unit])];
  });
  return [...new Set([view.x, ...paths])];
}
