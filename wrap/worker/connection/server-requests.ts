/** Requests that a wrapped server makes. Questions go to the call that asks; all other requests are refused. */
import { METHOD_NOT_FOUND, RELATED_TASK_META_KEY } from "@modelcontextprotocol/client";
import type { Log } from "../../../core/author/index.ts";
import type { IncomingMessage, PendingRequest } from "../host/open-request.ts";

/** The origin of a server's request: the transport on which it arrived. */
interface Origin {
  pending: ReadonlyMap<string, PendingRequest>;
  /** The open request that the transport belongs to, if it serves only one. */
  owner: string | undefined;
  /** Answers the server with a result or an error. */
  send(answer: object): void;
  log: Log;
}

const UNKNOWN_CALL =
  "durable-mcp-edge cannot know which of several calls asks: with --processes each call has a process of its own";

/** Forwards a request of the server to its call, or refuses it; false for one that the SDK's client answers. */
export function handleRequest(
  { id, method, params = {} }: IncomingMessage,
  { pending, owner, send, log }: Origin,
): boolean {
  if (method === "ping") return false;
  const refuse = (message: string) => {
    log.warn("wrapped server is refused", { method, reason: message });
    send({ error: { code: METHOD_NOT_FOUND, message } });
  };
  if (method !== "elicitation/create" || (params.mode ?? "form") !== "form") {
    refuse(`durable-mcp-edge offers no ${method}: only questions of the form mode are passed on`);
  } else {
    // Over stdio nothing says which call asks, and a question must not reach another call's caller.
    const calls = candidates(pending, owner, params);
    const [call] = calls;
    // A resumed stream may repeat the questions of other calls.
    if (!call && taskOf(params) !== undefined) return true;
    if (!call?.onQuestion || calls.length > 1) refuse(UNKNOWN_CALL);
    else call.onQuestion({ id: id ?? "", params, answer: (result) => send({ result }) });
  }
  return true;
}

/** The calls that a question may belong to. */
function candidates(
  pending: Origin["pending"],
  owner: string | undefined,
  params: Record<string, unknown>,
): PendingRequest[] {
  const asker = taskOf(params);
  const matches = [...pending].filter(([id, { onQuestion, task }]) => {
    if (onQuestion === undefined) return false;
    return asker === undefined ? owner === undefined || id === owner : task === asker;
  });
  const calls = matches.map(([, call]) => call);
  if (asker !== undefined || calls.length === 1) return calls;
  // A call that waits for an answer is not expected to ask again. But it might, so with several callers nothing is ruled out.
  const others = calls.filter((call) => call.isAsking?.() !== true);
  return calls.every(({ caller }) => caller === calls[0]?.caller) ? others : calls;
}

/** The task that a question belongs to, if the question names one. */
function taskOf({ _meta }: Record<string, unknown>): string | undefined {
  const taskId = (_meta as Record<string, { taskId?: unknown }> | undefined)?.[RELATED_TASK_META_KEY]?.taskId;
  return typeof taskId === "string" ? taskId : undefined;
}
