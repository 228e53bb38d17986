import { referringPart } from "../author/file.ts";
import type { Job } from "../author/job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import { type JobView, statusOf, viewOf } from "../jobs/status.ts";
import { partsIn } from "../resonate/codec.ts";
import { answersOf } from "./answers.ts";
import { type CallToolResult, FILES_META, type InputRequiredResult, JOB_META } from "./mcp.ts";
import { arrange, cutToLimit, limitOf, linksTo, noteOn, type ResourceLink } from "./results.ts";

/**
 * The key under which an answer says what it is about. It is never derived from content, as words of a wrapped server or an
 * upstream may look like a job's name or a link. It is a symbol, which no JSON can contain.
 */
export const ANSWER_SUBJECT = Symbol("about");

export interface AnswerSubject {
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

export type ToolAnswer = CallToolResult & { [ANSWER_SUBJECT]?: AnswerSubject };

/** Whether a result is the answer of a tool: not a question to the client, and not a task. */
export const isToolAnswer = (result: object): result is ToolAnswer => Array.isArray((result as ToolAnswer).content);

/** Whether a result is a question to the client. */
export const isInputRequired = (result: object): result is InputRequiredResult =>
  (result as InputRequiredResult).resultType === "input_required";

/** The part of an answer whose references to files are shown. `job`: the tool's job. */
export const referringIn = (
  { _meta, structuredContent, [ANSWER_SUBJECT]: subject }: ToolAnswer,
  job: Pick<Job, "returnsToolResult"> | undefined,
): unknown => subject?.files ?? (job?.returnsToolResult ? _meta?.[FILES_META] : structuredContent);

/** Structured output, repeated as JSON text for clients that read only text. */
export function structured(content: object, subject?: AnswerSubject): ToolAnswer {
  return {
    structuredContent: { ...content },
    content: [{ type: "text", text: JSON.stringify(content) }],
    ...(subject?.isView && { _meta: { [JOB_META]: subject.job } }),
    ...(subject && { [ANSWER_SUBJECT]: subject }),
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
  const wrappedAnswers = answersOf(promise.job);
  const failure = wrappedAnswers?.protocolErrorIn(promise.value);
  if (failure) throw failure;
  const isComplete = promise.state === "resolved" && !partsIn(promise.value);
  const wrappedAnswer = isComplete ? wrappedAnswers?.withinLimit(promise.value, limit, promise.job) : undefined;
  if (wrappedAnswer?.isComplete) return { ...wrappedAnswer.content, [ANSWER_SUBJECT]: { job } };
  // An answer that is too large is summarized like every large result, with its images beside the summary.
  const arranged = arrange([cutToLimit(viewOf(job, promise), {}, limit)], limit);
  // With a long name and a low limit, not even a summary fits.
  const view: JobView = arranged.views[0] ?? { job_name: job, status: statusOf(promise) };
  const cut =
    arranged.leftOut > 0 ? "The rest does not fit into this answer: probe_status returns it." : noteOn(arranged);
  const note = [promise.note, cut].filter((each) => each !== undefined).join(" ");
  const isError =
    promise.state !== "resolved" || (promise.job.returnsToolResult && (promise.value as CallToolResult).isError);
  const files = promise.job.returnsToolResult ? referringPart(promise) : undefined;
  const answer = structured(
    { ...view, ...(note !== "" && { note }), ...(!isError && { view_url }) },
    { job, isView: true, links: linksTo([view.summary]), media: wrappedAnswer?.media ?? [], files },
  );
  return isError ? { ...answer, isError: true } : answer;
}
