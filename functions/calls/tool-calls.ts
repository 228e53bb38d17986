/** Calls tools: what each call has around it, and the words for its errors. */
import { around } from "../../core/around.ts";
import { NotStarted } from "../../core/author/index.ts";
import { SearchRefused } from "../../core/resonate/index.ts";
import {
  type Access,
  ANSWER_SUBJECT,
  abilitiesOf,
  type CallContext,
  type CallFeature,
  type CallRequest,
  type CallResult,
  type CallToolResult,
  callerJobs,
  check,
  ErrorCode,
  isToolAnswer,
  ProtocolError,
  refusal,
  type Tool,
  type ToolAnnotations,
  type ToolCall,
  ToolError,
} from "../../core/tools/index.ts";
import { type EdgeLog, printable } from "../http/log.ts";
import { outageIn } from "../http/outage.ts";

export interface CallRules {
  /** How long a call waits for its job when its caller did not ask for progress, in milliseconds. */
  maxWaitMs: number;
  /** Whether an argument may state that the user agreed, and whether it counts even if the client can ask its user. */
  mayConfirm: boolean;
}

interface Options {
  log: EdgeLog;
  rules: CallRules;
}

/** A tool, and its call with the features that concern it. */
export interface OfferedTool {
  tool: Tool;
  /** Whether a call reads or writes jobs, by the tool's own hints. */
  access: Access;
  run(call: ToolCall): Promise<CallResult>;
}

export class ToolCalls {
  readonly #tools: ReadonlyMap<unknown, OfferedTool>;
  readonly #features: readonly CallFeature[];
  readonly #options: Options;

  /** `features`: the first is outermost. */
  constructor(tools: readonly Tool[], features: readonly CallFeature[], options: Options) {
    this.#features = features;
    this.#options = options;
    const offered = (tool: Tool): OfferedTool => ({
      tool,
      access: accessOf(tool),
      run: around(
        features.map((feature) => feature.call?.(tool)),
        callTool,
      ),
    });
    this.#tools = new Map(tools.map((tool) => [tool.name, offered(tool)]));
  }

  get listing(): Record<string, unknown>[] {
    return [...this.#tools.values()].map(({ tool }) => tool.listing);
  }

  find(name: unknown): OfferedTool | undefined {
    return this.#tools.get(name);
  }

  /** Whether a call of a tool that may take long does so for such a client, so that its answer should be streamed. */
  waits(tool: Tool, abilities: Pick<CallRequest, "declaresTasks">): boolean {
    return !this.#features.some((feature) => feature.returnsAtOnce?.(tool, abilities));
  }

  /**
   * Calls a tool. Errors that a model can act on are results with `isError`.
   *
   * @throws {ProtocolError} for a tool that does not exist, or that needs a capability the client did not declare
   */
  async call(name: string, args: Record<string, unknown>, request: CallRequest): Promise<CallResult> {
    const offered = this.find(name);
    if (!offered) {
      const names = [...this.#tools.keys()].join(", ");
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `Nothing was done: there is no tool ${printable(name)}. The tools are ${names}.`,
      );
    }
    const { tool, run } = offered;
    const checked = await check(tool.input, args);
    if ("problems" in checked) return errorResult(refusal(name, checked.problems));
    const { note } = checked;
    let adviceOf = (): string | undefined => (mayRepeat(tool) ? undefined : "The call may have had its effect.");
    const advise = (advice: string) => {
      adviceOf = () => advice;
    };
    try {
      const context = this.contextOf(request, tool, advise);
      return await run({ tool, args: checked.args, request, context, note });
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      const why = this.#explain(error, request.signal, adviceOf());
      return errorResult(note === undefined ? why : `${why}\n${note}`);
    }
  }

  /** The context of a call, or of a request that is served as a tool's call is. @throws {ToolError} */
  contextOf(request: CallRequest, tool?: Tool, advise?: CallContext["advise"]): CallContext {
    const { scope, labels: _labels, ...ofRequest } = request;
    const added: Partial<CallContext> = Object.assign(
      {},
      ...this.#features.map((feature) => feature.context?.(request, tool)),
    );
    const { store = scope.store } = added;
    const now = Date.now();
    return {
      ...this.#options.rules,
      ...ofRequest,
      store,
      // Most tools make no use of it.
      get jobs() {
        return callerJobs(store, now, request.signal);
      },
      now,
      until: scope.until,
      get session() {
        return scope.session;
      },
      tasks: false,
      asks: false,
      ...(advise && { advise }),
      isCancelled: () => isCancelled(request),
      ...added,
    };
  }

  /** Resolves as `answer` does. @throws {ProtocolError} with the message of a tool's error */
  async explainOutage<Result>(answer: Promise<Result>, signal: AbortSignal): Promise<Result> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      throw new ProtocolError(ErrorCode.InternalError, this.#explain(error, signal));
    }
  }

  /** The error in words for a model. Unexpected errors are logged. `advice`: what to do if a repeat is not safe. */
  #explain(error: unknown, signal: AbortSignal, advice?: string): string {
    if (error instanceof ToolError) return error.message;
    if (error instanceof NotStarted) return `Nothing was done: ${error.message}.`;
    if (error instanceof SearchRefused) {
      return "Nothing was done: this deployment's token for its Resonate server may not search. Look at jobs by name, with probe_status.";
    }
    const { log } = this.#options;
    const outage = outageIn(error, log, signal, advice);
    if (outage !== undefined) return outage;
    log.error("tool failed", { error: log.describe(error) });
    return `Something went wrong inside the server. ${advice ?? "Repeating the same call is safe."}`;
  }
}

/** Calls the tool itself, and adds the remark on the arguments to its answer. */
async function callTool({ tool, args, request, context, note, resumed }: ToolCall): Promise<CallResult> {
  const { scope, cancelsByLeaving } = request;
  const calling = resumed && tool.resume ? tool.resume(resumed, context) : tool.call(args, context);
  // When its client cancels the call by disconnecting, the call still has to end what it has started.
  if (tool.waits && cancelsByLeaving) scope.waitUntil(calling.then(undefined, () => {}));
  const result = await calling;
  if (!isToolAnswer(result)) return result;
  const { id, job } = result[ANSWER_SUBJECT] ?? {};
  if (job !== undefined)
    scope.requestLog.job = id === undefined ? scope.store.logName(job) : scope.store.names.local(id);
  return note === undefined ? result : { ...result, content: [...result.content, { type: "text", text: note }] };
}

/** Whether the client has cancelled the call, and has not merely lost its connection. */
const isCancelled = ({ scope, signal, cancelsByLeaving }: CallRequest): boolean =>
  scope.cancelled?.aborted === true || (cancelsByLeaving && signal.aborted && Date.now() < scope.until);

/** A request that says nothing about its client. */
export const bareRequest = (scope: CallRequest["scope"], signal: AbortSignal): CallRequest => ({
  ...abilitiesOf(),
  scope,
  signal,
  inputResponses: {},
  cancelsByLeaving: false,
});

/** What a call may do. A tool that starts jobs writes, even if it declares itself read-only. */
function accessOf({ job, listing }: Tool): Access {
  const { readOnlyHint } = (listing.annotations ?? {}) as ToolAnnotations;
  return readOnlyHint === true && !job ? "read" : "write";
}

/** Whether a repeat of a call is safe, unless the tool says otherwise during the call. */
function mayRepeat({ job, listing }: Tool): boolean {
  const { readOnlyHint, idempotentHint } = (listing.annotations ?? {}) as ToolAnnotations;
  return job !== undefined || readOnlyHint === true || idempotentHint === true;
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
