import { CallerJobs } from "../../core/author/caller-jobs.ts";
import { withoutConsent } from "../../core/author/consent.ts";
import {
  refusal,
  type Tool,
  type CallContext as ToolCall,
  type ToolContext,
  ToolError,
} from "../../core/author/tool.ts";
import type { Caller } from "../../core/definitions/caller.ts";
import { NotStarted } from "../../core/definitions/job.ts";
import { ResonateRefused, ResonateUnavailable, SearchRefused } from "../../core/jobs/remote-store.ts";
import { check } from "../../core/tools/arguments.ts";
import {
  type CallToolResult,
  ErrorCode,
  type InputRequiredResult,
  isInputRequired,
  ProtocolError,
} from "../../core/tools/mcp.ts";
import { structured } from "../../core/tools/present.ts";
import { linksIn, MAX_ANSWER } from "../../core/tools/results.ts";
import type { EdgeLog } from "../http/log.ts";
import { printable } from "../http/printable.ts";
import type { Access, RequestScope } from "../http/request.ts";
import type { Pages } from "../pages/sessions.ts";
import { createTask, missingTasksCapability, type TaskService } from "../tasks/service.ts";

/** What there is to know of a `tools/call` request besides the tool's name and arguments, whichever way it came in. */
export interface CallRequest
  extends Pick<ToolContext, "signal" | "inputResponses" | "idempotencyKey" | "reportProgress"> {
  scope: RequestScope;
  /** Whether the request declared that its client understands tasks, and that it shows forms to its user. */
  declaresTasks: boolean;
  showsForms: boolean;
  /** Whether it declared that its client shows cards. */
  showsCards: boolean;
}

/** What a deployment decides about calls. */
export interface CallRules {
  /** How long a call waits for its job where its caller asked for no progress, in milliseconds. */
  patience: number;
  /** Whether an argument may say that the user agreed. */
  mayConfirm: boolean;
}

/** What calls are made with. */
export interface CallOptions {
  tasks: TaskService | undefined;
  log: EdgeLog;
  pages: Pick<Pages, "urlOf">;
  policy: CallRules;
}

export type CallResult = CallToolResult | InputRequiredResult | Awaited<ReturnType<typeof createTask>>;

/** Calls the tools of a deployment. */
export class Calls {
  readonly #tasks: TaskService | undefined;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #readers: readonly NonNullable<Tool["read"]>[];
  readonly #log: EdgeLog;
  readonly #pages: CallOptions["pages"];
  readonly #policy: CallRules;

  constructor(tools: readonly Tool[], { tasks, log, pages, policy }: CallOptions) {
    this.#tasks = tasks;
    this.#log = log;
    this.#pages = pages;
    this.#policy = policy;
    const offered = policy.mayConfirm ? tools : tools.map(withoutConsent);
    this.#readers = [...new Set(tools.flatMap(({ read }) => read ?? []))];
    this.#tools = new Map(offered.map((tool) => [tool.name, tool]));
  }

  /** The tools as `tools/list` gives them. */
  get listing(): Record<string, unknown>[] {
    return [...this.#tools.values()].map((tool) => tool.listing);
  }

  /** Whether there is a tool of this name. */
  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** Whether a call may take long, so that its answer should be streamed. */
  waits(name: string, declaresTasks: boolean): boolean {
    const tool = this.#tools.get(name);
    return tool?.waits === true && !(declaresTasks && this.#tasks && tool.start);
  }

  /** What a call of a tool does with jobs. Whatever may start one writes, also when it says of itself that it reads. */
  accessOf(name: string): Access | undefined {
    const tool = this.#tools.get(name);
    if (!tool) return undefined;
    const { readOnlyHint } = (tool.listing.annotations ?? {}) as { readOnlyHint?: boolean };
    return readOnlyHint === true && !tool.start ? "read" : "write";
  }

  /** Whether a call may be answered with a question, which a client has to be able to answer. */
  mayAsk(name: string): boolean {
    return this.#tools.get(name)?.start !== undefined;
  }

  /**
   * Calls a tool. What a model can act on is a result with `isError`.
   *
   * @throws {ProtocolError} for a tool that does not exist, or that needs what the client did not declare
   */
  async call(name: string, args: Record<string, unknown>, context: CallRequest): Promise<CallResult> {
    try {
      return await this.#call(name, args, context);
    } finally {
      context.scope.line.release();
    }
  }

  async #call(name: string, args: Record<string, unknown>, context: CallRequest): Promise<CallResult> {
    const tool = this.#tools.get(name);
    if (!tool) {
      const known = [...this.#tools.keys()].join(", ");
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `Nothing was done: there is no tool ${printable(name)}. The tools are ${known}.`,
      );
    }
    const tasks = context.declaresTasks ? this.#tasks : undefined;
    if (tool.tasksOnly && !tasks) throw missingTasksCapability();

    const checked = await check(tool.input, args);
    if ("problems" in checked) {
      return errorResult(refusal(name, checked.problems));
    }
    const { note } = checked;
    const { signal, scope } = context;
    const { caller, line, store } = scope;
    const toolContext = this.#toolCall(context, tasks !== undefined);
    try {
      if (!tasks || !tool.start) {
        const result = await tool.call(checked.args, toolContext);
        const job = jobIn(result);
        if (job !== undefined) line.job = store.logName(job);
        if (isInputRequired(result)) return result;
        const more = [
          ...(scope.links ? linksIn(result.structuredContent) : []),
          ...(note === undefined ? [] : [{ type: "text" as const, text: note }]),
        ];
        const shown = job !== undefined && tool.job ? await this.#withPage(result, job, caller) : result;
        return bounded(more.length === 0 ? shown : { ...shown, content: [...shown.content, ...more] }, tool);
      }
      const started = await tool.start(checked.args, toolContext);
      if (isInputRequired(started)) return started;
      line.job = store.logName(started.name);
      return await createTask(tasks, caller, started, await this.#pages.urlOf(started.name, caller), note);
    } catch (error) {
      const why = this.#explain(error, signal);
      return errorResult(note === undefined ? why : `${why}\n${note}`);
    }
  }

  /** Whether a URI may be of a resource that a tool's results refer to. */
  reads(uri: unknown): boolean {
    return this.#readers.length > 0 && !String(uri).startsWith("job:");
  }

  /** What the first tool that can read it says of it. */
  async read(uri: string, context: CallRequest): Promise<{ contents: unknown[] }> {
    let why: unknown;
    for (const read of this.#readers) {
      try {
        return await read(uri, this.#toolCall(context, false));
      } catch (error) {
        why = error;
      }
    }
    throw why;
  }

  #toolCall({ scope, showsForms, ...given }: CallRequest, tasks: boolean): ToolCall {
    const { store, until } = scope;
    const now = Date.now();
    const jobs = new CallerJobs(store, now, given.signal);
    return { ...this.#policy, ...given, store, jobs, now, until, tasks, asks: tasks && showsForms };
  }

  /** What is said of a job, with the address of its page. */
  async #withPage(result: CallToolResult, job: string, caller: Caller): Promise<CallToolResult> {
    const view_url = result.isError ? undefined : await this.#pages.urlOf(job, caller);
    return view_url === undefined ? result : structured({ ...(result.structuredContent as object), view_url });
  }

  /** What `answer` resolves to. @throws {ProtocolError} with what went wrong, in the words of a tool's error */
  async explained<Result>(answer: Promise<Result>, signal: AbortSignal): Promise<Result> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      throw new ProtocolError(ErrorCode.InternalError, this.#explain(error, signal));
    }
  }

  /** What went wrong, worded for a model. */
  #explain(error: unknown, signal: AbortSignal): string {
    if (error instanceof ToolError) return error.message;
    if (error instanceof NotStarted) return `Nothing was done: ${error.message}.`;
    if (error instanceof SearchRefused) {
      return "Nothing was done: this deployment's token for its Resonate server may not search. Look at jobs by name, with probe_status.";
    }
    if (error instanceof ResonateRefused) {
      this.#log.error("resonate refused", { reason: error.message });
      return `The Resonate server, which keeps the jobs, refuses this: ${error.message}. No job is lost. Repeating it does not help before whoever runs this server has looked into it.`;
    }
    if (error instanceof ResonateUnavailable) {
      if (!signal.aborted) this.#log.warn("resonate unavailable", { reason: error.message });
      return `The Resonate server, which keeps the jobs, is unavailable: ${error.message}. No job is lost. Repeat the same call later: that is safe, and never starts a job twice.`;
    }
    this.#log.error("tool failed", { error: this.#log.describe(error) });
    return "Something went wrong inside the server. Repeating the same call is safe.";
  }
}

/** The name of the job that a result is about, when it is about one. */
function jobIn(result: CallToolResult | InputRequiredResult): string | undefined {
  if (isInputRequired(result)) return undefined;
  const { job_name, promise_id } = (result.structuredContent ?? {}) as { job_name?: string; promise_id?: string };
  return job_name ?? promise_id;
}

/** The result, or an error in place of one that is larger than the tool's answers may be. */
function bounded(result: CallToolResult, { maxAnswer = MAX_ANSWER }: Tool): CallToolResult {
  // Most are far too short for their length to have to be told.
  const isShort = result.content.every((part) => part.type !== "text" || part.text.length < maxAnswer / 4);
  if (isShort && result.content.length < 10) return result;
  const { length } = JSON.stringify(result);
  if (length <= maxAnswer) return result;
  const job = jobIn(result);
  const about = job === undefined ? "" : ` It is about ${job}, which is not changed by this.`;
  return errorResult(
    `The answer would have ${length} characters; up to ${maxAnswer} are sent.${about} Ask for less at a time.`,
  );
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
