/** Access to jobs from a card, through the calls that its host makes for it. */
import type { View } from "../../core/definitions/view.ts";
import type { Latest } from "../../core/jobs/feed/partial.ts";
import type { CallToolResult } from "../../core/tools/mcp.ts";
import type { ShownFile } from "../job/files.tsx";
import type { FormSchema } from "../lib/server.ts";
import type { Host } from "./host.ts";

/** A file of a job, with its download address if the deployment has one. */
export interface CardFile extends ShownFile {
  url?: string;
}

/** A job as the tool `job_card` describes it. */
export interface Job {
  job_name: string;
  title?: string;
  /** How to show the result; `chart` is the address of the program that draws it, if it is a chart. */
  view?: View;
  chart?: string;
  status: "running" | "complete" | "failed" | "cancelled" | "timed_out" | "not_found";
  error?: string;
  doing?: string;
  progress?: { done: number; total?: number };
  step?: { name: string; attempt: number; error?: string; next?: number };
  partial?: Latest;
  questions?: { question: string; message: string; requestedSchema: FormSchema }[];
  arguments?: unknown;
  job_files?: CardFile[];
  newer?: string;
  view_url?: string;
  started_at?: string;
  finished_at?: string;
}

export const wordsOf = ({ content }: Pick<CallToolResult, "content">): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");

/** Calls a tool. @throws {Error} with a message for people if the host or the tool refuses */
export async function call(host: Host, name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const answer = await host.request<CallToolResult>("tools/call", { name, arguments: args });
  if (answer.isError) throw new Error(wordsOf(answer));
  return (answer.structuredContent ?? {}) as Record<string, unknown>;
}

const MOST_PARTS = 40;

/** A job's result, or those of its fields that the job's view shows. @throws {Error} if it cannot be read */
export async function resultOf(host: Host, job: string, view: View | undefined): Promise<unknown> {
  const fields = fieldsOf(view);
  let text = "";
  for (let part = 0, offset = 0; part < MOST_PARTS; part += 1) {
    const asked = { job_names: [job], result: "full", ...(fields && { fields }), ...(offset > 0 && { offset }) };
    const [status] = (await call(host, "probe_status", asked)).statuses as Record<string, unknown>[];
    if (!status || !("summary" in status)) return status?.result;
    const summary = status.summary as { part: string; next_offset?: number };
    text += summary.part;
    if (summary.next_offset === undefined) return JSON.parse(text);
    offset = summary.next_offset;
  }
  throw new Error("The result is too large to be shown here.");
}

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
