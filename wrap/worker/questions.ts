/** What a wrapped server asks for while calls are under way: questions go to the call that asks, all else is refused. */
import { RELATED_TASK_META_KEY } from "@modelcontextprotocol/client";
import type { Log } from "../../core/definitions/context.ts";
import type { Incoming, Waiting } from "./request-state.ts";

/** Where a request of the server's has come. */
interface Place {
  /** The requests under way, by their ids. */
  waiting: ReadonlyMap<string, Waiting>;
  /** The request that the transport belongs to, where it is one's own. */
  owner: string | undefined;
  /** Answers it, with a result or an error. */
  send(answer: object): void;
  log: Log;
}

/** Passes a request of the server's on, or refuses it; false for one that the SDK's client answers. */
export function passOn({ id, method, params = {} }: Incoming, { waiting, owner, send, log }: Place): boolean {
  if (method === "ping") return false;
  const refuse = (message: string) => {
    log.warn("wrapped server is refused", { method, reason: message });
    send({ error: { code: -32601, message } });
  };
  if (method !== "elicitation/create") {
    refuse(`durable-mcp-edge offers no ${method}: only questions of the form mode are passed on`);
  } else if (params.mode !== undefined && params.mode !== "form") {
    refuse("durable-mcp-edge passes on questions of the form mode only");
  } else {
    // Over stdio nothing says which call a question belongs to, and it must not reach another call's caller.
    const calls = askers(waiting, owner, params);
    const [call] = calls;
    // A stream that is picked up may tell what other calls were asked.
    if (!call && taskOf(params) !== undefined) return true;
    if (!call?.onAsked || calls.length > 1) refuse("durable-mcp-edge cannot tell which of several calls asks");
    else call.onAsked({ id: id ?? "", params, answer: (result) => send({ result }) });
  }
  return true;
}

/** The calls that a question may belong to. */
function askers(waiting: Place["waiting"], owner: string | undefined, params: Record<string, unknown>): Waiting[] {
  const task = taskOf(params);
  const fits = [...waiting].filter(([id, { onAsked, task: its }]) => {
    if (onAsked === undefined) return false;
    return task === undefined ? owner === undefined || id === owner : its === task;
  });
  return fits.map(([, each]) => each);
}

/** The task that a question of a server's belongs to, where that is said. */
function taskOf({ _meta }: Record<string, unknown>): string | undefined {
  const related = (_meta as Record<string, { taskId?: unknown }> | undefined)?.[RELATED_TASK_META_KEY]?.taskId;
  return typeof related === "string" ? related : undefined;
}
