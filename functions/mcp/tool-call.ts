/** The method `tools/call`. A tool that waits is answered with a stream, by the SDK if the tool may ask its caller something. */
import { isRecord } from "../../core/resonate/index.ts";
import {
  abilitiesOf,
  type CallRequest,
  CLIENT_CAPABILITIES,
  jobNames,
  type Method,
  type MethodRequest,
  type Plain,
  type RequestScope,
  type Tool,
} from "../../core/tools/index.ts";
import { callMetaIn, reporting } from "../calls/call-meta.ts";
import type { ToolCalls } from "../calls/tool-calls.ts";
import { eventStream, type Send, type StreamWriter } from "../http/event-stream.ts";
import type { CallsInFlight } from "./in-flight.ts";
import type { Responder } from "./respond.ts";

/** The cost of one name or of a whole call, in requests to the Resonate server, if it is more than a look at a job. */
const COST_OF_A_NAME: ReadonlyMap<unknown, number> = new Map([
  ["cancel_job", 4],
  ["forget_jobs", 2],
]);
const COST_OF_A_CALL: ReadonlyMap<unknown, number> = new Map([
  ["list_jobs", 10],
  ["schedule_job", 6],
]);

export function toolCall(calls: ToolCalls, responder: Responder, inFlight: CallsInFlight): Method {
  return {
    form: { params: ["name", "arguments"], namedBy: "name" },
    cost(params) {
      const offered = calls.find(params.name);
      const weight = weightOfCall(params);
      if (!offered) return { weight };
      const { tool, access } = offered;
      const streams = tool.waits && calls.waits(tool, abilitiesOf(Object(params._meta)[CLIENT_CAPABILITIES] ?? {}));
      return { weight, access: [access], streams };
    },
    async answer(call) {
      const { message, plain, streams: isLong, request, scope, sdk } = call;
      const { id, params } = message;
      const { arguments: args = {} } = params;
      const { tool } = calls.find(params.name) ?? {};
      if (!tool) return undefined;
      const isOurs = plain && isRecord(args) && !(isLong && plain.showsForms && tool.start);
      if (isOurs && !isLong) {
        const result = calls.call(tool.name, args, requestOfPlain(plain, scope, request.signal));
        const response = await responder.respond(id, plain, result);
        if (response) return response;
      }
      // The response begins before the tool is done.
      scope.requestLog.delay();
      const open = inFlight.begin(scope, id);
      scope.cancelled = open.signal;
      const aborted = AbortSignal.any([request.signal, open.signal]);
      const release = () => {
        open.end();
        scope.requestLog.release();
      };
      if (!isOurs || !isLong) return sdk(isLong, aborted, release);
      const run = ({ send, signal }: StreamWriter) =>
        streamCall({ call, plain, tool, args, send, aborted: signal, isOver: open.signal }).finally(release);
      return eventStream(run, { disconnected: aborted, terms: scope });
    },
  };

  /** Calls a tool, and sends its messages and its answer on the stream of the request. */
  async function streamCall({ call, plain, tool, args, send, aborted, isOver }: StreamedCall): Promise<void> {
    const notify = (method: string, params: object) => send({ jsonrpc: "2.0", method, params });
    const request = {
      ...requestOfPlain(plain, call.scope, aborted),
      send,
      notify,
      ...reporting(plain.progressToken, notify),
    };
    const answer = await responder.answerTo(call.message.id, plain, calls.call(tool.name, args, request));
    if (answer && !isOver.aborted) send(answer.message);
  }
}

interface StreamedCall {
  call: MethodRequest;
  plain: Plain;
  tool: Tool;
  args: Record<string, unknown>;
  send: Send;
  aborted: AbortSignal;
  /** Aborted when the client cancels the call. */
  isOver: AbortSignal;
}

/** What a plain request says about a call. */
export function requestOfPlain(
  { era, declaresTasks, showsForms, showsCards, meta }: Plain,
  scope: RequestScope,
  signal: AbortSignal,
): CallRequest {
  return {
    declaresTasks,
    showsForms,
    showsCards,
    scope,
    signal,
    inputResponses: {},
    cancelsByLeaving: era === "modern",
    ...(meta && callMetaIn(meta)),
  };
}

/** The cost of a `tools/call`, by the jobs that it names; that of one if its arguments will be refused. */
function weightOfCall({ name, arguments: args }: Record<string, unknown>): number {
  const { job_names } = Object(args);
  const names = job_names === undefined ? 1 : (jobNames.safeParse(job_names).data?.length ?? 1);
  return COST_OF_A_CALL.get(name) ?? (COST_OF_A_NAME.get(name) ?? 1) * names;
}
