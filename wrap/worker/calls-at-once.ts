/** Makes calls for the edge before they become jobs: see `../at-once.ts`. */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { HOUR, type Log, type Step } from "../../core/author/index.ts";
import { machineClock } from "../../core/engine/index.ts";
import { parseExact, within } from "../../core/resonate/index.ts";
import { type CallToolResult, sizeOf } from "../../core/tools/index.ts";
import { type CallState, SEND_RECORD_HEADER, type WorkerEndpoint } from "../at-once.ts";
import { CallArgs, type SendRecord } from "../call-job.ts";
import type { CallEvent, CallInFlight } from "./call/call-in-flight.ts";
import { CallRequests, recordOf } from "./call/call-requests.ts";
import { revisionFails } from "./call/other-revision.ts";
import { protocolError, storeAnswer } from "./call/outcome.ts";
import type { WrappedServer } from "./wrapped-server.ts";

/** How long a call may wait to be sent, and then for its answer, before it becomes a job; in milliseconds. */
const SEND_TIMEOUT_MS = 50;
const ANSWER_TIMEOUT_MS = 250;
/** The maximum length of an answer that needs no job. */
const MAX_DIRECT_ANSWER_CHARACTERS = 40_000;

interface Callee {
  server: WrappedServer;
  log: Log;
  /** Whether the job of this name may run at present. */
  mayRun(job: string): Promise<boolean>;
}

/** Serves such calls at the endpoint `url` of this machine. */
export function serveCalls({ url, token }: WorkerEndpoint, callee: Callee): void {
  const { log } = callee;
  const secret = Buffer.from(`Bearer ${token}`);
  const isOurs = ({ headers: { authorization = "" } }: IncomingMessage) => {
    const header = Buffer.from(authorization);
    return header.length === secret.length && timingSafeEqual(header, secret);
  };
  const { hostname, port } = new URL(url);
  createServer((request, response) => {
    if (!isOurs(request)) return void response.writeHead(401).end();
    answer(callee, request, response).catch((error: Error) => {
      log.debug("call left to its job", { reason: error.message });
      if (response.headersSent) response.destroy();
      else response.writeHead(503).end();
    });
  })
    .on("error", (error) => log.warn("every call is a job from its start", { reason: error.message }))
    .listen(Number(port), hostname);
}

async function answer(callee: Callee, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { job, args, until } = parseExact(await text(request)) as { job: string; args?: unknown; until?: number };
  if (args === undefined) {
    callee.server.calls.of(job)?.request.cancel("the job was cancelled");
    return void response.writeHead(204).end();
  }
  const callArgs = CallArgs.parse(args);
  const state = await makeCall(callee, job, callArgs, until, (record) => {
    // Without this header the edge treats the call as not sent, and its job sends it again. A call that is sent at most once
    // therefore needs the header before it is sent.
    response.writeHead(200, { "content-type": "application/json", [SEND_RECORD_HEADER]: JSON.stringify(record) });
    if (callArgs.once) response.flushHeaders();
  });
  response.end(JSON.stringify(state));
}

/**
 * Makes a call, before `until` (in milliseconds since the epoch). `onSend` gets the record before the call is sent.
 *
 * @throws {Error} if it cannot be sent at once
 */
async function makeCall(
  callee: Callee,
  jobName: string,
  args: CallArgs,
  until = Number.POSITIVE_INFINITY,
  onSend: (record: SendRecord) => void,
): Promise<CallState> {
  const { server, log, mayRun } = callee;
  const abandonment = new AbortController();
  const { signal } = abandonment;
  const step = { signal, deadline: Number.POSITIVE_INFINITY, log, progress() {} } as unknown as Step;
  const requests = new CallRequests(server, {
    jobName,
    deadline: 0,
    signal,
    args,
    answers: new Map(),
    questions: new Map(),
  });
  const preparation = mayRun(jobName).then((isFree) => (isFree ? requests.prepare(step) : undefined));
  const sendRecord = await within(preparation, SEND_TIMEOUT_MS);
  if (!sendRecord || Date.now() > until) {
    abandonment.abort();
    throw new Error("it has to wait");
  }
  onSend(sendRecord);
  // If the call was not sent or is lost, its job decides what to do: the job finds it here.
  const call = await requests
    .begin(step, { base: 0, request: { kind: "call" }, ...recordOf(sendRecord, args) })
    .catch(() => undefined);
  if (!call) return { sendRecord };
  const firstEvent = call.event(0).catch(() => undefined);
  const event = await within(firstEvent, ANSWER_TIMEOUT_MS);
  const answer = event && (await answerIn(event, call, step, server.options.name));
  if (!answer) {
    limitCall(server, jobName, call);
    return { sendRecord };
  }
  call.request.release();
  server.calls.forget(jobName);
  if (!call.progress) return { answer };
  const [done, total, message] = call.progress;
  return { answer, progress: { done, total, message } };
}

/** The result that a job would have, if the call has finished and its answer is small. */
async function answerIn(
  event: CallEvent,
  call: CallInFlight,
  step: Step,
  name: string,
): Promise<Record<string, unknown> | undefined> {
  if (call.options.session.protocolVersion === undefined && revisionFails(event)) return undefined;
  if (event.kind === "error") return protocolError(event);
  if (event.kind !== "result") return undefined;
  const { result } = event;
  const { resultType, task } = result;
  const isFinal = resultType !== "input_required" && resultType !== "task" && task === undefined;
  if (!isFinal || JSON.stringify(result).length > 2 * MAX_DIRECT_ANSWER_CHARACTERS) return undefined;
  const answer = await storeAnswer(step, result, name, call.logs);
  return sizeOf(answer as unknown as CallToolResult).text <= MAX_DIRECT_ANSWER_CHARACTERS ? answer : undefined;
}

/**
 * Ends the call after the usual time limit, so that a call whose job never comes does not hold its slot longer. While its job waits
 * for it, the job limits it, but not during its questions.
 */
function limitCall({ calls, options }: WrappedServer, jobName: string, call: CallInFlight): void {
  const end = () => {
    if (calls.of(jobName) === call && call.onProgress === undefined) call.request.cancel("it took too long");
  };
  const cancel = machineClock.after(options.timeout ?? HOUR, end);
  void call.completion.then(cancel);
}
