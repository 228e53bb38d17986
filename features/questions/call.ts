/** Puts the questions of a call's job to the user of the client: in the answer, or on the stream of a client of 2025. */
import type { Around } from "../../core/around.ts";
import type { ClientResponse, EdgeFeature } from "../../core/feature.ts";
import type { DurablePromise } from "../../core/jobs/index.ts";
import { isRecord } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  abilitiesOf,
  type CallRequest,
  type CallResult,
  type InputRequiredResult,
  isInputRequired,
  isToolAnswer,
  type JobHandles,
  promiseOf,
  type RequestScope,
  type ToolCall,
  ToolError,
} from "../../core/tools/index.ts";
import { answerQuestions } from "./answer.ts";

/** The name that a session id seals. No job has this name. */
const FORMS_SESSION = "forms";

/** How long a call waits for an answer of a client of 2025, in milliseconds, with progress and without. */
const ANSWER_TIMEOUT_MS = { progress: 190_000, silent: 40_000 };

/** The questions of calls. */
class CallQuestions {
  readonly #handles: JobHandles;

  constructor(handles: JobHandles) {
    this.#handles = handles;
  }

  /** The job in `requestState`, whose questions have been answered. @throws {ToolError} for an answer that does not fit */
  async answer(
    requestState: string,
    responses: Record<string, unknown>,
    { caller, store }: RequestScope,
    signal: AbortSignal,
  ): Promise<DurablePromise> {
    const promise = await promiseOf(this.#handles, requestState, { caller, store, signal });
    const invalid = await answerQuestions(store, promise, responses, signal);
    if (invalid) throw new ToolError(`Nothing was done: ${invalid.key}: ${invalid.reason}. The question stays open.`);
    return promise;
  }

  /** The questions that an answer carries, if the client can be asked. */
  async ask(call: ToolCall, result: CallResult): Promise<CallResult> {
    const asks = isToolAnswer(result) ? result[ANSWER_SUBJECT]?.asks : undefined;
    if (!asks || !call.context.asks) return result;
    const { promise, inputRequests } = asks;
    const requestState = await this.#handles.seal(promise.name, call.request.scope.caller.id, promise.createdAt);
    return { resultType: "input_required", inputRequests, requestState } as InputRequiredResult;
  }

  /** Puts the questions on the stream of a client of 2025, which answers them in requests of their own. */
  async askOnStream(call: ToolCall, next: () => Promise<CallResult>): Promise<CallResult> {
    const { scope, signal, reportProgress, send } = call.request;
    const timeout = ANSWER_TIMEOUT_MS[reportProgress ? "progress" : "silent"];
    const until = Math.min(Date.now() + timeout, scope.until);
    const askedIds = new Set<string>();
    for (;;) {
      // When the time is up, the result has the question in words.
      call.context.asks = Date.now() < until;
      const result = await this.ask(call, await next());
      if (!isInputRequired(result) || signal.aborted) return result;
      const { requestState = "", inputRequests } = result;
      for (const [key, { method, params }] of Object.entries(inputRequests ?? {})) {
        const id = `${requestState} ${key}`;
        if (!askedIds.has(id)) send?.({ jsonrpc: "2.0", id, method, params });
        askedIds.add(id);
      }
      call.resumed = await this.answer(String(requestState), {}, scope, signal);
    }
  }

  /** Whether the questions of a call may be put to the client of its session. */
  async asksInSession({ scope, send }: CallRequest): Promise<boolean> {
    const session = send && scope.request.headers.get("mcp-session-id");
    return session ? (await this.#handles.open(session, scope.caller.id))?.name === FORMS_SESSION : false;
  }
}

export function questions(handles: JobHandles): EdgeFeature {
  const calls = new CallQuestions(handles);
  const layer: Around<ToolCall, CallResult> = async (call, next) => {
    const { requestState, inputResponses, scope, signal } = call.request;
    if (requestState !== undefined) call.resumed = await calls.answer(requestState, inputResponses, scope, signal);
    return (await calls.asksInSession(call.request)) ? calls.askOnStream(call, next) : calls.ask(call, await next());
  };
  return {
    name: "questions",
    call: ({ resume }) => (resume ? layer : undefined),
    context: (request, tool) => ({ asks: request.showsForms && tool?.resume !== undefined }),
    // Nothing is stored: the session id itself says that its client shows forms.
    session: async (declared, { caller }) =>
      abilitiesOf(declared).showsForms ? handles.seal(FORMS_SESSION, caller.id, Date.now()) : undefined,
    responseIn(message): ClientResponse | undefined {
      const answer = answerIn(message);
      if (!answer) return undefined;
      const { requestState, responses } = answer;
      return {
        method: "tasks/update",
        params: { taskId: requestState, inputResponses: responses },
        take: async (scope, signal) => void (await calls.answer(requestState, responses, scope, signal)),
      };
    },
  };
}

/** The answer in a client's response to a question: the call's state, and the answer by its question's key. */
function answerIn(message: unknown): { requestState: string; responses: Record<string, unknown> } | undefined {
  const { id, result } = Object(message);
  const [, requestState, key] = (typeof id === "string" && /^(\S+) (.+)$/s.exec(id)) || [];
  if (requestState === undefined || key === undefined || !isRecord(result)) return undefined;
  return { requestState, responses: { [key]: result } };
}
