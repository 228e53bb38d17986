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

/** The beginning of the name that a session id seals. No job has such a name. */
const FORMS_SESSION = "forms ";

/** How long a call waits for an answer of a client of 2025, in milliseconds, with progress and without. */
const ANSWER_TIMEOUT_MS = { progress: 190_000, silent: 40_000 };

/** The questions of calls. */
class CallQuestions {
  readonly #handles: JobHandles;
  /** What ends the asking of a call in this isolate if its client answers with an error: by session and question. */
  readonly #askings = new Map<string, () => void>();

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
    const askings = new Set<string>();
    const refused = Promise.withResolvers<undefined>();
    let inWords: CallResult = { content: [] };
    try {
      for (;;) {
        // When the time is up, the result has the question in words.
        call.context.asks = Date.now() < until;
        const waiting = next();
        // The wait that a refusal leaves behind ends by itself.
        waiting.catch(() => {});
        const news = await Promise.race([waiting, refused.promise]);
        if (news === undefined) return inWords;
        inWords = news;
        const result = await this.ask(call, news);
        if (!isInputRequired(result) || signal.aborted) return result;
        const { requestState = "", inputRequests } = result;
        for (const [key, { method, params }] of Object.entries(inputRequests ?? {})) {
          const id = `${requestState} ${key}`;
          const asking = askingKey(scope, id);
          if (askings.has(asking)) continue;
          askings.add(asking);
          this.#askings.set(asking, () => refused.resolve(undefined));
          send?.({ jsonrpc: "2.0", id, method, params });
        }
        call.resumed = await this.answer(String(requestState), {}, scope, signal);
      }
    } finally {
      for (const asking of askings) this.#askings.delete(asking);
    }
  }

  /** Ends the asking of the call that waits for the answer to a question; in another isolate it ends when its time is up. */
  refuse(scope: RequestScope, id: string): void {
    this.#askings.get(askingKey(scope, id))?.();
  }

  /** Whether the questions of a call may be put to the client of its session. */
  async asksInSession({ scope, send }: CallRequest): Promise<boolean> {
    const id = send && scope.session !== undefined && scope.request.headers.get("mcp-session-id");
    return id ? (await this.#handles.open(id, scope.caller.id))?.name.startsWith(FORMS_SESSION) === true : false;
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
      abilitiesOf(declared).showsForms
        ? handles.seal(FORMS_SESSION + crypto.randomUUID(), caller.id, Date.now())
        : undefined,
    responseIn(message): ClientResponse | undefined {
      const answer = answerIn(message);
      if (!answer) return undefined;
      const { id, requestState, responses } = answer;
      return {
        method: "tasks/update",
        params: { taskId: requestState, inputResponses: responses ?? {} },
        take: async (scope, signal) => {
          if (responses) await calls.answer(requestState, responses, scope, signal);
          else calls.refuse(scope, id);
        },
      };
    },
  };
}

/** A question that a call asks its client. */
const askingKey = ({ session }: RequestScope, id: string): string => JSON.stringify([session, id]);

interface ClientAnswer {
  /** The question's id, and the call's state, which is its first part. */
  id: string;
  requestState: string;
  /** The answer by its question's key; undefined if the client answers with an error. */
  responses: Record<string, unknown> | undefined;
}

function answerIn(message: unknown): ClientAnswer | undefined {
  const { id, result, error } = Object(message);
  const [, requestState, key] = (typeof id === "string" && /^(\S+) (.+)$/s.exec(id)) || [];
  if (requestState === undefined || key === undefined || !(isRecord(result) || isRecord(error))) return undefined;
  return { id, requestState, responses: isRecord(result) ? { [key]: result } : undefined };
}
