/** The seam of tool calls: what a feature does around the call of a tool. */
import type { Around } from "../around.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import type { Abilities } from "./abilities.ts";
import type { InputRequiredResult } from "./mcp.ts";
import type { ToolAnswer } from "./present.ts";
import type { RequestScope } from "./request-scope.ts";
import type { CallContext, Tool, ToolContext } from "./tool.ts";

/** A request of a client apart from its method and parameters, and, for a call, from the tool's name and arguments. */
export interface CallRequest
  extends
    Abilities,
    Pick<ToolContext, "signal" | "inputResponses" | "idempotencyKey" | "reportProgress">,
    Pick<CallContext, "logLevel" | "notify"> {
  scope: RequestScope;
  /** The state that an answer with questions gave the client to send back. */
  requestState?: string | undefined;
  /** Whether its client cancels it by disconnecting, as in the 2026-07-28 revision. */
  cancelsByLeaving: boolean;
  /** Its `_meta`, without the entries that are for the protocol alone. */
  meta?: Record<string, unknown>;
  /** The labels of the jobs that it starts, not checked yet. */
  labels?: unknown;
  /** Its answers by key as the client sent them; one that is no response object is undefined. Undefined without answers. */
  rawResponses?: Record<string, unknown>;
  /** Sends the client a message on the stream of its call; absent if the call has none. */
  send?(message: object): void;
}

/** A call of a tool whose arguments fit. */
export interface ToolCall {
  readonly tool: Tool;
  /** A feature may leave some out. */
  args: unknown;
  readonly request: CallRequest;
  readonly context: CallContext;
  /** A remark on the arguments, for the answer. */
  readonly note: string | undefined;
  /** The job that an earlier request of the same call has started: the call continues to wait for it. */
  resumed?: DurablePromise;
}

/** What a call is answered with. A task is a result that the client follows by other methods. */
export type CallResult = ToolAnswer | InputRequiredResult | { resultType: "task"; [key: string]: unknown };

export interface CallFeature {
  /** The layer around calls of a tool, made once; undefined for a tool that the feature does not concern. */
  call?(tool: Tool): Around<ToolCall, CallResult> | undefined;
  /** What the feature adds to the context of a call. @throws {ToolError} for a request that it refuses */
  context?(request: CallRequest, tool: Tool | undefined): Partial<CallContext>;
  /** Whether a call of the tool returns at once for a client with these abilities. Default: it does not. */
  returnsAtOnce?(tool: Tool, abilities: Pick<CallRequest, "declaresTasks">): boolean;
}
