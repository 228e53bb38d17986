import {
  type CallToolResult,
  type InputRequiredResult,
  isInputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import { logError } from "../log.ts";
import { NameTaken, type RemoteStore, ResonateUnavailable } from "../resonate/store.ts";
import { createTask, missingTasksCapability, type TaskService } from "../tasks/methods.ts";
import { explain } from "../tools/arguments.ts";
import { type Tool, type ToolContext, ToolError } from "../tools/tool.ts";

/** What there is to know of a `tools/call` request besides the tool's name and arguments, whichever way it came in. */
export interface CallContext extends Pick<ToolContext, "signal" | "inputResponses" | "reportProgress"> {
  /** Whose request it is; empty where nobody is authenticated. */
  caller: string;
  /** Whether the request declared that its client understands tasks. */
  declaresTasks: boolean;
}

export type CallResult = CallToolResult | InputRequiredResult | Awaited<ReturnType<typeof createTask>>;

/** Calls the tools of a deployment. */
export class Calls {
  readonly #store: RemoteStore;
  readonly #tasks: TaskService | undefined;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor(store: RemoteStore, tools: readonly Tool[], tasks: TaskService | undefined) {
    this.#store = store;
    this.#tasks = tasks;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** Whether a call may take long, so that its answer should be streamed. */
  waits(name: string, declaresTasks: boolean): boolean {
    const tool = this.#tools.get(name);
    return tool?.waits === true && !(declaresTasks && this.#tasks && tool.start);
  }

  /**
   * Calls a tool. What a model can act on is a result with `isError`.
   *
   * @throws {ProtocolError} for a tool that does not exist, or that needs what the client did not declare
   */
  async call(name: string, args: Record<string, unknown>, context: CallContext): Promise<CallResult> {
    const tool = this.#tools.get(name);
    if (!tool) {
      const known = [...this.#tools.keys()].join(", ");
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}. The tools are ${known}.`);
    }
    const tasks = context.declaresTasks ? this.#tasks : undefined;
    if (tool.tasksOnly && !tasks) throw missingTasksCapability();

    const parsed = tool.input.safeParse(args);
    if (!parsed.success) {
      const problems = explain(tool.input, parsed.error, args);
      return errorResult([`Nothing was done: ${name} does not accept these arguments.`, ...problems].join("\n"));
    }
    const { signal, inputResponses, reportProgress, caller } = context;
    const toolContext: ToolContext = {
      store: this.#store,
      now: Date.now(),
      tasks: tasks !== undefined,
      signal,
      inputResponses,
      ...(reportProgress && { reportProgress }),
    };
    try {
      if (!tasks || !tool.start) return await tool.call(parsed.data, toolContext);
      const started = await tool.start(parsed.data, toolContext);
      return isInputRequiredResult(started) ? started : await createTask(tasks, caller, started);
    } catch (error) {
      return errorResult(explainFailure(error, signal));
    }
  }
}

/** What went wrong, worded for a model. */
function explainFailure(error: unknown, signal: AbortSignal): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof NameTaken) {
    return `The name ${error.message} is taken on the Resonate server by something that is not a job of this server. Nothing was started.`;
  }
  if (error instanceof ResonateUnavailable) {
    if (!signal.aborted) logError("resonate unavailable", error.cause ?? error);
    return `The Resonate server, which keeps the jobs, is unavailable: ${error.message}. No job is lost. Repeat the same call later: that is safe, and never starts a job twice.`;
  }
  logError("tool failed", error);
  return "Something went wrong inside the server. Repeating the same call is safe.";
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
