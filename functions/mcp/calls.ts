import { describeError, type Log } from "../log.ts";
import {
  type CallToolResult,
  ErrorCode,
  type InputRequiredResult,
  isInputRequired,
  ProtocolError,
} from "../protocol.ts";
import type { RequestScope } from "../request.ts";
import { NameTaken, QuotaExceeded, type RemoteStore, ResonateUnavailable, SearchRefused } from "../resonate/store.ts";
import { createTask, missingTasksCapability, type TaskService } from "../tasks/service.ts";
import { explain } from "../tools/arguments.ts";
import { type Tool, type ToolContext, ToolError } from "../tools/tool.ts";

/** What there is to know of a `tools/call` request besides the tool's name and arguments, whichever way it came in. */
export interface CallContext extends Pick<ToolContext, "signal" | "inputResponses" | "reportProgress"> {
  scope: RequestScope;
  /** Whether the request declared that its client understands tasks. */
  declaresTasks: boolean;
}

export type CallResult = CallToolResult | InputRequiredResult | Awaited<ReturnType<typeof createTask>>;

/** Calls the tools of a deployment. */
export class Calls {
  readonly #store: RemoteStore;
  readonly #tasks: TaskService | undefined;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #log: Log;

  constructor(store: RemoteStore, tools: readonly Tool[], tasks: TaskService | undefined, log: Log) {
    this.#store = store;
    this.#tasks = tasks;
    this.#log = log;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
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

  /** Whether a call may be answered with a question, which a client has to be able to answer. */
  mayAsk(name: string): boolean {
    return this.#tools.get(name)?.start !== undefined;
  }

  /**
   * Calls a tool. What a model can act on is a result with `isError`.
   *
   * @throws {ProtocolError} for a tool that does not exist, or that needs what the client did not declare
   */
  async call(name: string, args: Record<string, unknown>, context: CallContext): Promise<CallResult> {
    try {
      return await this.#call(name, args, context);
    } finally {
      context.scope.line.release();
    }
  }

  async #call(name: string, args: Record<string, unknown>, context: CallContext): Promise<CallResult> {
    const tool = this.#tools.get(name);
    if (!tool) {
      const known = [...this.#tools.keys()].join(", ");
      throw new ProtocolError(ErrorCode.InvalidParams, `Unknown tool: ${name}. The tools are ${known}.`);
    }
    const tasks = context.declaresTasks ? this.#tasks : undefined;
    if (tool.tasksOnly && !tasks) throw missingTasksCapability();

    const parsed = tool.input.safeParse(args);
    if (!parsed.success) {
      const problems = explain(tool.input, parsed.error, args);
      return errorResult([`Nothing was done: ${name} does not accept these arguments.`, ...problems].join("\n"));
    }
    const { signal, inputResponses, reportProgress, scope } = context;
    const { caller, line } = scope;
    const store = this.#store.as(caller, line.requestId);
    const toolContext: ToolContext = {
      store,
      now: Date.now(),
      tasks: tasks !== undefined,
      signal,
      inputResponses,
      ...(reportProgress && { reportProgress }),
    };
    try {
      if (!tasks || !tool.start) {
        const result = await tool.call(parsed.data, toolContext);
        const job = jobIn(result);
        if (job !== undefined) line.job = store.logName(job);
        return result;
      }
      const started = await tool.start(parsed.data, toolContext);
      if (isInputRequired(started)) return started;
      line.job = store.logName(started.name);
      return await createTask(tasks, caller, started);
    } catch (error) {
      return errorResult(this.#explain(error, signal));
    }
  }

  /** What went wrong, worded for a model. */
  #explain(error: unknown, signal: AbortSignal): string {
    if (error instanceof ToolError) return error.message;
    if (error instanceof NameTaken) {
      return `The name ${error.message} is taken on the Resonate server by something that is not a job of this server. Nothing was started.`;
    }
    if (error instanceof QuotaExceeded) {
      return `Nothing was started: ${error.message}.`;
    }
    if (error instanceof SearchRefused) {
      return "Jobs cannot be listed: the token that this deployment has for its Resonate server is limited to a namespace, and may not search. Look at jobs by their names, with probe_status.";
    }
    if (error instanceof ResonateUnavailable) {
      if (!signal.aborted) this.#log.warn("resonate unavailable", { reason: error.message });
      return `The Resonate server, which keeps the jobs, is unavailable: ${error.message}. No job is lost. Repeat the same call later: that is safe, and never starts a job twice.`;
    }
    this.#log.error("tool failed", { error: describeError(error) });
    return "Something went wrong inside the server. Repeating the same call is safe.";
  }
}

/** The name of the job that a result is about, when it is about one. */
function jobIn(result: CallToolResult | InputRequiredResult): string | undefined {
  if (isInputRequired(result)) return undefined;
  const { job_name, promise_id } = (result.structuredContent ?? {}) as { job_name?: string; promise_id?: string };
  return job_name ?? promise_id;
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
