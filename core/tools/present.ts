import { referringPart } from "../author/file.ts";
import type { Job } from "../author/job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import { type JobView, statusOf, viewOf } from "../jobs/status.ts";
import { partsIn } from "../resonate/codec.ts";
import { answersOf } from "./answers.ts";
import { type CallToolResult, FILES_META, type InputRequiredResult, JOB_META } from "./mcp.ts";
import { arrange, hold, limitOf, linksTo, noteOn, type ResourceLink } from "./results.ts";

/**
 * The key under which an answer says what it is about. It is never derived from content, as words of a wrapped server or an
 * upstream may look like a job's name or a link. It is a symbol, which no JSON can contain.
 */
export const ABOUT = Symbol("about");

export interface About {
  /** The job, by its promise's name; `id`: the promise's id, if it is known. */
  job?: string;
  id?: string;
  /** Whether the structured content describes the job. */
  isView?: boolean;
  /** Links to results that the answer summarizes. */
  links?: readonly ResourceLink[];
  /** The job and its questions, if the answer may ask them. */
  asks?: { promise: DurablePromise; inputRequests: Record<string, object> };
  /** The values whose references to files are shown. Default: the answer's own. */
  files?: unknown;
  /** Whether the structured content is for a card, which gets the addresses of its files in their references. */
  isCard?: boolean;
  /** Images, sounds and files that are shown beside the structured content. */
  media?: CallToolResult["content"];
}

export type ToolAnswer = CallToolResult & { [ABOUT]?: About };

/** Whether a result is the answer of a tool: not a question to the client, and not a task. */
export const isToolAnswer = (result: object): result is ToolAnswer => Array.isArray((result as ToolAnswer).content);

/** Whether a result is a question to the client. */
export const isInputRequired = (result: object): result is InputRequiredResult =>
  (result as InputRequiredResult).resultType === "input_required";

/** The part of an answer whose references to files are shown. `job`: the tool's job. */
export const referringIn = (
  { _meta, structuredContent, [ABOUT]: about }: ToolAnswer,
  job: Pick<Job, "answers"> | undefined,
): unknown => about?.files ?? (job?.answers ? _meta?.[FILES_META] : structuredContent);

/** Structured output, repeated as JSON text for clients that read only text. */
export function structured(content: object, about?: About): ToolAnswer {
  return {
    structuredContent: { ...content },
    content: [{ type: "text", text: JSON.stringify(content) }],
    ...(about?.isView && { _meta: { [JOB_META]: about.job } }),
    ...(about && { [ABOUT]: about }),
  };
}

/**
 * The answer of a tool whose work is one job, once its promise has settled. `view_url`: the address of the job's page.
 *
 * @throws {ProtocolError} if a wrapped server answered with one
 */
export function presentJob(promise: DurablePromise, view_url?: string): ToolAnswer {
  const job = promise.name;
  const limit = limitOf(promise.job);
  const answers = answersOf(promise.job);
  const failure = answers?.protocolErrorIn(promise.value);
  if (failure) throw failure;
  const isKnown = promise.state === "resolved" && !partsIn(promise.value);
  const answered = isKnown ? answers?.bounded(promise.value, limit, promise.job) : undefined;
  if (answered?.isWhole) return { ...answered.content, [ABOUT]: { job } };
  // An answer that is too large is summarized like every large result, with its images beside the summary.
  const fitted = arrange([hold(viewOf(job, promise), {}, limit)], limit);
  // With a long name and a low limit, not even a summary fits.
  const view: JobView = fitted.views[0] ?? { job_name: job, status: statusOf(promise) };
  const cut = fitted.leftOut > 0 ? "The rest does not fit into this answer: probe_status returns it." : noteOn(fitted);
  const note = [promise.note, cut].filter((each) => each !== undefined).join(" ");
  const isError = promise.state !== "resolved" || (promise.job.answers && (promise.value as CallToolResult).isError);
  const files = promise.job.answers ? referringPart(promise) : undefined;
  const answer = structured(
    { ...view, ...(note !== "" && { note }), ...(!isError && { view_url }) },
    { job, isView: true, links: linksTo([view.summary]), media: answered?.media ?? [], files },
  );
  return isError ? { ...answer, isError: true } : answer;
}
