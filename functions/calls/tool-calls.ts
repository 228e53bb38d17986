import type { Caller } from "../../core/author/caller.ts";
import { filesIn } from "../../core/author/file.ts";
import { NotStarted } from "../../core/author/job.ts";
import type { DurablePromise } from "../../core/jobs/durable-promise.ts";
import { SearchRefused } from "../../core/resonate/connection/failures.ts";
import { check } from "../../core/tools/arguments.ts";
import { callerJobs } from "../../core/tools/caller-jobs.ts";
import {
  type CallToolResult,
  ErrorCode,
  type InputRequiredResult,
  isInputRequired,
  LABELS_META,
  OURS,
  ProtocolError,
  type ToolAnnotations,
} from "../../core/tools/mcp.ts";
import { ABOUT, type About, referringIn, type ToolAnswer } from "../../core/tools/present.ts";
import { MAX_ANSWER } from "../../core/tools/results.ts";
import {
  type CallContext,
  type Passed,
  refusal,
  type Tool,
  type ToolContext,
  ToolError,
} from "../../core/tools/tool.ts";
import { withoutConsent } from "../../features/consent/consent.ts";
import { labelsIn } from "../../features/labels/labels.ts";
import { answerTask } from "../../features/questions/answer.ts";
import { type Answering, createTask, missingTasksCapability, type TaskService } from "../../features/tasks/service.ts";
import { type Abilities, abilitiesOf } from "../../features/tasks/task.ts";
import { printable } from "../http/log.ts";
import { outageIn } from "../http/outage.ts";
import type { Access, RequestScope } from "../http/scope.ts";

/** A `tools/call` request apart from the tool's name and arguments. */
export interface CallRequest
  extends Abilities,
    Pick<ToolContext, "signal" | "inputResponses" | "idempotencyKey" | "reportProgress">,
    Pick<CallContext, "logLevel" | "notify"> {
  scope: RequestScope;
  /** The state that an answer with questions gave the client to send back. */
  requestState?: string | undefined;
  /** Whether its client cancels it by disconnecting, as in the 2026-07-28 revision. */
  cancelsByLeaving: boolean;
  /** The labels of the jobs that it starts, not checked yet. */
  labels?: unknown;
  /** Its `_meta`, without the entries that are for this server alone. */
  meta?: Record<string, unknown>;
}

interface CallRules {
  /** How long a call waits for its job when its caller did not ask for progress, in milliseconds. */
  patience: number;
  /** Whether an argument may state that the user agreed, and whether it counts even if the client can ask its user. */
  mayConfirm: boolean;
  trusts: boolean;
}

/** The name that a session id seals. No job has this name. */
const FORMS = "forms";

interface ToolCallsOptions extends Answering {
  tasks: TaskService | undefined;
  rules: CallRules;
}

export type CallResult = CallToolResult | InputRequiredResult | Awaited<ReturnType<typeof createTask>>;

export class ToolCalls {
  readonly #tools: ReadonlyMap<unknown, Tool>;
  readonly #options: ToolCallsOptions;
  /** What the servers behind the tools serve besides tools; undefined where there are no such servers. */
  readonly passed: Passed | undefined;

  constructor(tools: readonly Tool[], options: ToolCallsOptions) {
    this.#options = options;
    const offered = options.rules.mayConfirm ? tools : tools.map(withoutConsent);
    const servers = [...new Set(tools.flatMap(({ behind }) => behind ?? []))];
    this.passed = servers[0]?.together(servers);
    this.#tools = new Map(offered.map((tool) => [tool.name, tool]));
  }

  get listing(): Record<string, unknown>[] {
    return [...this.#tools.values()].map((tool) => tool.listing);
  }

  find(name: unknown): Tool | undefined {
    return this.#tools.get(name);
  }

  /** Whether a call may take long, so that its answer should be streamed. */
  waits(tool: Tool, declaresTasks: boolean): boolean {
    return tool.waits && !(declaresTasks && this.#options.tasks && tool.start);
  }

  /** A session id for a client of 2025 that shows forms. Nothing is stored: the id itself says so. Undefined without a key. */
  async sessionOf({ id }: Caller): Promise<string | undefined> {
    return this.#options.tasks?.handles.seal(FORMS, id, Date.now());
  }

  /** Whether the questions of a tool's job may be put to the client of a session. */
  async asksInSession({ resume }: Tool, session: string | null, { id }: Caller): Promise<boolean> {
    if (session === null || !resume) return false;
    return (await this.#options.tasks?.handles.open(session, id))?.name === FORMS;
  }

  /**
   * Calls a tool. Errors that a model can act on are results with `isError`.
   *
   * @throws {ProtocolError} for a tool that does not exist, or that needs a capability the client did not declare
   */
  async call(name: string, args: Record<string, unknown>, request: CallRequest): Promise<CallResult> {
    const tool = this.#tools.get(name);
    if (!tool) {
      const known = [...this.#tools.keys()].join(", ");
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `Nothing was done: there is no tool ${printable(name)}. The tools are ${known}.`,
      );
    }
    const tasks = request.declaresTasks ? this.#options.tasks : undefined;
    if (tool.tasksOnly && !tasks) throw missingTasksCapability();

    const checked = await check(tool.input, args);
    if ("problems" in checked) return errorResult(refusal(name, checked.problems));
    const { note } = checked;
    const { scope, signal, requestState, inputResponses } = request;
    const { caller, line, store, links } = scope;
    let advice = mayRepeat(tool) ? undefined : "The call may have had its effect.";
    const advise = (words: string) => {
      advice = words;
    };
    let labels: readonly string[];
    try {
      labels = labelsIn(request.labels ?? []);
    } catch (error) {
      return errorResult(refusal(name, [`_meta["${LABELS_META}"]: ${(error as Error).message}`]));
    }
    const context = { ...this.#contextOf(request, tasks !== undefined, tool, labels), advise };
    // A user who can be asked is asked: the model's statement that the user agreed does not count.
    const heard =
      context.asks && !this.#options.rules.trusts ? withoutKeys(checked.args, tool.consent ?? []) : checked.args;
    try {
      if (!tasks || !tool.start) {
        const isAnswer = tool.resume && requestState !== undefined;
        const answered = isAnswer ? await this.answer(requestState, inputResponses, scope, signal) : undefined;
        const calling = answered && tool.resume ? tool.resume(answered, context) : tool.call(heard, context);
        // When its client cancels the call by disconnecting, the call still has to end what it has started.
        const isNoted = tool.waits && request.cancelsByLeaving;
        if (isNoted) scope.waitUntil(calling.then(undefined, () => {}));
        const result = await calling;
        if (isInputRequired(result)) return result;
        const about = result[ABOUT];
        if (about?.job !== undefined) line.job = store.logName(about.job);
        if (about?.asks && context.asks) return await this.#asking(about.asks, caller);
        const referring = referringIn(result, tool.job);
        const hasFiles = filesIn(referring, 1).length > 0;
        const shown = hasFiles ? await this.#withFiles(result, referring, scope) : result;
        const said = scope.textOnce ? withoutTwin(shown) : shown;
        const content = [...said.content];
        if (links) content.push(...(about?.links ?? []));
        if (note !== undefined) content.push({ type: "text", text: note });
        const answer = bounded({ ...said, content }, tool);
        return about?.media ? { ...answer, content: [...answer.content, ...about.media] } : answer;
      }
      const started = await tool.start(heard, context);
      if (isInputRequired(started)) return started;
      line.job = store.logName(started.name);
      return await createTask(tasks, caller, started, note);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      const why = this.#explain(error, signal, advice);
      return errorResult(note === undefined ? why : `${why}\n${note}`);
    }
  }

  /** Passes a request other than a call on to the servers behind the tools. @throws {ProtocolError} */
  pass(method: string, params: Record<string, unknown>, request: CallRequest): Promise<object> {
    const { signal } = request;
    const answer = this.passed?.methods[method]?.(params, this.#contextOf(request, false)) as Promise<object>;
    return this.explained(answer, signal);
  }

  /** A function that reports changes of the resources of servers behind the tools; undefined where they have none. */
  watching(scope: RequestScope) {
    const { passed } = this;
    return (
      passed?.capabilities.resources &&
      ((uris: readonly string[], signal: AbortSignal, onUpdated: (uri: string) => void) =>
        passed.watch(uris, this.#contextOf({ ...NO_CALL, scope, signal }, false), onUpdated))
    );
  }

  /** The answer that puts a job's questions to the client, which repeats its call with the answers. */
  async #asking({ promise, inputRequests }: NonNullable<About["asks"]>, caller: Caller): Promise<InputRequiredResult> {
    const requestState = await this.#options.tasks?.handles.seal(promise.name, caller.id, promise.createdAt);
    return { resultType: "input_required", inputRequests, requestState } as InputRequiredResult;
  }

  /**
   * Answers questions of the job in `requestState`, which an earlier answer has asked. Returns the job; undefined in a deployment
   * without tasks.
   *
   * @throws {ToolError} for an answer that does not fit
   */
  async answer(
    requestState: string,
    responses: Record<string, unknown>,
    scope: RequestScope,
    signal: AbortSignal,
  ): Promise<DurablePromise | undefined> {
    const { tasks } = this.#options;
    if (!tasks) return undefined;
    const { promise, misfit } = await answerTask(tasks, requestState, responses, { ...scope, signal });
    if (misfit) throw new ToolError(`Nothing was done: ${misfit.key}: ${misfit.reason}. The question stays open.`);
    return promise;
  }

  #contextOf(
    { scope, showsForms, labels: _, ...request }: CallRequest,
    tasks: boolean,
    tool?: Tool,
    labels: readonly string[] = [],
  ): CallContext {
    const { until, client } = scope;
    const store = labels.length > 0 ? scope.store.with({ labels }) : scope.store;
    const now = Date.now();
    const jobs = callerJobs(store, now, request.signal);
    const isAskedInCalls = this.#options.tasks !== undefined && tool?.resume !== undefined;
    return {
      ...this.#options.rules,
      ...request,
      store,
      jobs,
      now,
      until,
      client,
      tasks,
      pageOf: (job) => this.#options.pages.urlOf(job, scope.caller),
      asks: showsForms && (tasks || isAskedInCalls),
      isCancelled: () =>
        scope.cancelled?.aborted === true ||
        (request.cancelsByLeaving && request.signal.aborted && Date.now() < scope.until),
    };
  }

  /** The answer with the addresses of the files that `referring` names. */
  async #withFiles(answer: ToolAnswer, referring: unknown, { caller, links }: RequestScope): Promise<ToolAnswer> {
    const files = await this.#options.files();
    return answer[ABOUT]?.isCard ? files.addressed(answer, caller) : files.shown(answer, referring, caller, links);
  }

  /** Resolves as `answer` does. @throws {ProtocolError} with the message of a tool's error */
  async explained<Result>(answer: Promise<Result>, signal: AbortSignal): Promise<Result> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      throw new ProtocolError(ErrorCode.InternalError, this.#explain(error, signal));
    }
  }

  /** The error in words for a model. Unexpected errors are logged. `advice`: what to do where a repeat is not safe. */
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

/** What a request's `_meta` says about a call. */
export function saidInMeta({
  progressToken,
  idempotencyKey,
  [LABELS_META]: labels,
  ...others
}: Record<string, unknown>) {
  const meta = Object.entries(others).filter(([key]) => !OURS.test(key));
  return {
    ...(labels !== undefined && { labels }),
    ...(meta.length > 0 && { meta: Object.fromEntries(meta) }),
    ...(typeof idempotencyKey === "string" && idempotencyKey !== "" && { idempotencyKey }),
  };
}

/** The least increase from one progress report to the next. */
const LEAST = 0.001;

/** Reports the progress of a call under its caller's token. Each report is greater than the previous one. */
export function reporting(token: string | number | undefined, notify: NonNullable<CallRequest["notify"]>) {
  if (token === undefined) return {};
  let last = -LEAST;
  const reportProgress: CallRequest["reportProgress"] = (progress, total, message) => {
    last = Math.max(progress, last + LEAST);
    notify("notifications/progress", { progressToken: token, progress: last, total, message });
  };
  return { reportProgress };
}

/** A request that says nothing about its client. */
const NO_CALL = { ...abilitiesOf(), inputResponses: {}, cancelsByLeaving: false };

/** Whether a call reads or writes jobs. A tool that starts jobs writes, even if it declares itself read-only. */
export function accessOf({ job, listing }: Tool): Access {
  const { readOnlyHint } = (listing.annotations ?? {}) as ToolAnnotations;
  return readOnlyHint === true && !job ? "read" : "write";
}

/** Whether a repeat of a call is safe, unless the tool says otherwise during the call. */
function mayRepeat({ job, listing }: Tool): boolean {
  const { readOnlyHint, idempotentHint } = (listing.annotations ?? {}) as ToolAnnotations;
  return job !== undefined || readOnlyHint === true || idempotentHint === true;
}

const withoutKeys = (args: unknown, keys: readonly string[]): unknown =>
  keys.length === 0 ? args : Object.fromEntries(Object.entries(args as object).filter(([key]) => !keys.includes(key)));

/** The result without texts that repeat its structured content. */
function withoutTwin({ content, ...rest }: ToolAnswer): ToolAnswer {
  const twin = JSON.stringify(rest.structuredContent);
  const once = content.map((part) =>
    part.type === "text" && part.text === twin ? { ...part, text: "In structuredContent." } : part,
  );
  return { ...rest, content: once };
}

/** The result, or an error if it is larger than the tool allows. */
function bounded(result: ToolAnswer, { job: made, maxAnswer = MAX_ANSWER }: Tool): CallToolResult {
  // The content of a wrapped server's answer has a limit for each of its types.
  if (made?.answers) return result;
  // Most results are clearly short enough. Others have to be serialized to be measured.
  const isShort = result.content.every((part) => part.type !== "text" || part.text.length < maxAnswer / 4);
  if (isShort && result.content.length < 10) return result;
  const { length } = JSON.stringify(result);
  if (length <= maxAnswer) return result;
  const job = result[ABOUT]?.job;
  const about = job === undefined ? "" : ` It is about ${job}, which is not changed by this.`;
  return errorResult(
    `The answer would have ${length} characters; up to ${maxAnswer} are sent.${about} Ask for less at a time.`,
  );
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
