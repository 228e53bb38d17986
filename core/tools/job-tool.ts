/** Tools whose work is a job. */
import type * as z from "zod";
import type { Accepts } from "../author/implement.ts";
import { defineJob, type Job, type JobOptions, type JsonSchema, type Schema } from "../author/job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import { startJob } from "../jobs/start.ts";
import { JobOutput, Json, statusOf } from "../jobs/status.ts";
import { splitGeneration } from "../resonate/ids.ts";
import { structured } from "./present.ts";
import { noteLimit } from "./results.ts";
import {
  type CallContext,
  describeTool,
  refusal,
  type Started,
  type Tool,
  type ToolContext,
  ToolError,
  type ToolOptions,
  type ToolSchedule,
} from "./tool.ts";
import { waitFor } from "./wait-for.ts";

/** Tools named in answers that start a job: hosts with a search for tools may show a model only those that it found. */
const COLLECTING_TOOLS = ["await_result", "probe_status"];

type MaybePromise<T> = T | Promise<T>;

/**
 * The options of {@link defineDurableTool} for a job with a definition of its own: those of all tools, the job, and its
 * arguments.
 *
 * @example
 * const options: JobToolOptions<{ in_days: number }, { day: string }, unknown> = {
 *   job: report,
 *   name: "report_soon",
 *   title: "Report",
 *   description: "Writes the report of a day to come.",
 *   input: z.object({ in_days: z.int().min(1).describe("In how many days, from 1.") }),
 *   args: ({ in_days }, { now }) => ({ day: new Date(now + in_days * DAY).toISOString().slice(0, 10) }),
 * };
 */
export interface JobToolOptions<Input, Args, Result> extends ToolOptions<Input> {
  job: Job<Args, Result>;
  /** The job's arguments. Default: the tool's own. Throws a {@link ToolError} to refuse a call. */
  args?(input: Input, context: ToolContext): MaybePromise<Args>;
  /** Called once the job is started or found, before the answer. */
  onStarted?(job: Started<Args, Result>, input: Input, context: ToolContext): MaybePromise<void>;
  /** Whether the tool serves only clients that understand tasks. */
  tasksOnly?: boolean;
  /** When the deployment itself starts such a job, which then belongs to no caller. */
  schedule?: ToolSchedule;
}

/**
 * The options of {@link defineDurableTool} for a tool that starts a job and answers at once.
 *
 * @example
 * export const startReport = defineDurableTool({
 *   job: report,
 *   name: "start_report",
 *   title: "Start a report",
 *   description: "Starts the report of a day.",
 *   input: z.object({ day: z.iso.date().describe("The day.") }),
 *   output: z.object({ job_name: z.string(), status: JobStatus }),
 *   answer: ({ jobName, status }) => ({ job_name: jobName, status }),
 * } satisfies StartToolOptions<{ day: string }, { day: string }, unknown, object>);
 */
export interface StartToolOptions<Input, Args, Result, Output extends object> extends JobToolOptions<
  Input,
  Args,
  Result
> {
  output: Schema<Output>;
  answer(job: Started<Args, Result>, input: Input, context: ToolContext): MaybePromise<Output>;
}

/**
 * The options of {@link defineDurableTool}: those of all tools and those of its job.
 *
 * @example
 * const options: DurableToolOptions<{ url: string }, unknown> = {
 *   name: "watch_site",
 *   title: "Watch a site",
 *   description: "Watches a web site for a week.",
 *   input: z.object({ url: z.url().describe("The site's URL.") }),
 *   id: ({ url }) => url,
 *   deadline: 8 * DAY,
 * };
 * export const watchSite = defineDurableTool(options);
 */
export interface DurableToolOptions<Args, Result>
  extends
    ToolOptions<Args>,
    Pick<JobToolOptions<Args, Args, Result>, "schedule">,
    Omit<JobOptions<Args, Result>, "kind" | "prefix" | "args" | "result" | "restarts" | "answers" | "apps"> {
  /** The function's result: advertised, and checked before it is stored. */
  output?: Schema<Result>;
  /** The prefix of its jobs' names. Default: the tool's name, with `_` for `-` and `.`, and another `_`. */
  prefix?: string;
}

/**
 * A tool, and the definition of its job. `Input` is the type of the arguments that a caller passes.
 *
 * @example
 * const tool: DurableTool<{ url: string }, { url: string }> = waitForSite;
 */
export type DurableTool<Args = unknown, Result = unknown, Input = Args> = Tool &
  Accepts<Input> & { readonly job: Job<Args, Result> };

/**
 * Defines a tool whose work is a durable job. `implement`, in another file, adds the function that does the work. With `job`
 * the job is defined elsewhere (`defineJob`), and several tools may start it.
 *
 * A client that understands tasks gets the job as a task at once. Any other waits for the result, and after a while gets
 * the job's name and how to collect the result. With `answer` every call is answered at once with the value that this
 * function returns.
 *
 * @example
 * export const waitForSite = defineDurableTool({
 *   name: "wait_for_site",
 *   title: "Wait for a web site",
 *   description: "Waits until a web site answers, for up to a day.",
 *   input: z.object({ url: z.url().describe("The site's URL.") }),
 *   output: z.object({ url: z.string() }),
 *   id: ({ url }) => url,
 * });
 *
 * @example
 * export const dailyReport = defineDurableTool({ job: report, name: "daily_report", title: "Report", description: "Writes …",
 *   input: z.object({ day: z.iso.date() }) });
 */
export function defineDurableTool<Input, Args, Result, Output extends object, Given = unknown>(
  options: (JobToolOptions<Input, Args, Result> | StartToolOptions<Input, Args, Result, Output>) & {
    input: z.ZodType<Input, Given>;
  },
): DurableTool<Args, Result, Given>;
// The last, since a compiler explains a mistake by the last: most tools define their jobs.
export function defineDurableTool<Args, Result, Given = unknown>(
  options: DurableToolOptions<Args, Result> & { input: z.ZodType<Args, Given> },
): DurableTool<Args, Result, Given>;
export function defineDurableTool<Input, Args, Result>(
  options: DurableToolOptions<Args, Result> | JobToolOptions<Input, Args, Result>,
): DurableTool<Args, Result> {
  if ("job" in options) return jobTool(options);
  const { name, input, output } = options;
  const kind = name.replace(/[^A-Za-z0-9_]/g, "_");
  const job = defineJob<Args, Result>({ ...options, kind, args: input, ...(output && { result: output }) });
  return jobTool({ ...options, job });
}

function jobTool<Input, Args, Result, Output extends object>(
  options: JobToolOptions<Input, Args, Result> | StartToolOptions<Input, Args, Result, Output>,
): DurableTool<Args, Result> {
  const { job, schedule } = options;
  if (options.maxAnswer !== undefined) noteLimit(job as Job, options.maxAnswer);
  // Calls with the same arguments find the same job.
  const toolOptions = { ...options, annotations: { idempotentHint: true, ...options.annotations } };
  const argsOf = async (input: unknown, context: ToolContext) => {
    try {
      return (options.args ? await options.args(input as Input, context) : input) as Args;
    } catch (error) {
      if (error instanceof ToolError) throw new ToolError(refusal(options.name, [error.message]), { cause: error });
      throw error;
    }
  };
  const launch = async (input: unknown, context: CallContext): Promise<DurablePromise> => {
    const promise = await startJob(context.store, job, await argsOf(input, context), context.now);
    await options.onStarted?.(startedOf(promise), input as Input, context);
    return promise;
  };
  const common = {
    job,
    ...(schedule && { schedule }),
    argsOf,
    find: async (input: unknown, context: ToolContext) => context.jobs.find(job, await argsOf(input, context)),
  };
  if ("answer" in options) return { ...common, ...answeringAtOnce(options, toolOptions, launch) };
  const output = JobOutput.extend({
    result: (job.result ?? Json).optional().describe("What the job produced, when complete."),
  });
  return {
    ...describeTool(toolOptions, output),
    ...common,
    waits: !options.tasksOnly,
    ...(options.tasksOnly && { tasksOnly: true }),
    start: launch,
    call: (input, context) => waitFor(launch(input, context), context, options),
    resume: (promise, context) => waitFor(Promise.resolve(promise), context, options),
  };
}

/** What a tool is that answers as soon as its job has started. */
function answeringAtOnce<Input, Args, Result, Output extends object>(
  options: StartToolOptions<Input, Args, Result, Output>,
  described: ToolOptions<Input>,
  launch: (input: unknown, context: CallContext) => Promise<DurablePromise>,
) {
  const description = describeTool(described, options.output);
  const mayAdd = (description.listing.outputSchema as JsonSchema).additionalProperties !== false;
  return {
    ...description,
    waits: false,
    returnsAtOnce: true,
    async call(input: unknown, context: CallContext): ReturnType<Tool["call"]> {
      const promise = await launch(input, context);
      const output = await options.answer(startedOf(promise), input as Input, context);
      const { job_name, promise_id = job_name } = output as { job_name?: unknown; promise_id?: unknown };
      const how = promise.state === "pending" && mayAdd && { collect_with: COLLECTING_TOOLS };
      const { id, name: job, note } = promise;
      const isView = promise_id === job;
      const view_url = isView ? await context.pageOf?.(job) : undefined;
      const answer = structured(
        { ...output, ...how, ...(view_url !== undefined && { view_url }) },
        { id, job, isView },
      );
      return note === undefined ? answer : { ...answer, content: [...answer.content, { type: "text", text: note }] };
    },
  };
}

export function startedOf<Args, Result>(promise: DurablePromise): Started<Args, Result> {
  const { name, args, createdAt, state, value } = promise;
  return {
    jobName: name,
    status: statusOf(promise),
    args: args as Args,
    generation: splitGeneration(name).generation,
    startedAt: createdAt,
    ...(state === "resolved" && { result: value as Result }),
  };
}
