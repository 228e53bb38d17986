/** Makes calls for the edge before they become jobs: see `../at-once.ts`. */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { HOUR, type Log, type Step } from "../../core/author/context.ts";
import { machineClock } from "../../core/engine/clock.ts";
import { within } from "../../core/resonate/pacing/backoff.ts";
import { sizeOf } from "../../core/tools/content.ts";
import type { CallToolResult } from "../../core/tools/mcp.ts";
import { SENT, type Told, type Worker } from "../at-once.ts";
import { CallArgs, type Sent } from "../call-job.ts";
import type { CallEvent, CallInFlight } from "./call/call-in-flight.ts";
import { CallRequests, recordOf } from "./call/call-requests.ts";
import { revisionFails } from "./call/other-revision.ts";
import { protocolError, storedAnswer } from "./call/outcome.ts";
import type { WrappedServer } from "./wrapped-server.ts";

/** How long a call may wait to be sent, and then for its answer, before it becomes a job; in milliseconds. */
const UNSENT = 50;
const AT_ONCE = 250;
/** The largest answer that needs no job, in characters. */
const MOST = 40_000;

interface Callee {
  server: WrappedServer;
  log: Log;
  /** Whether the job of this name may run at present. */
  mayRun(job: string): Promise<boolean>;
}

/** Serves such calls at the endpoint `url` of this machine. */
export function serveCalls({ url, token }: Worker, callee: Callee): void {
  const { log } = callee;
  const expected = Buffer.from(`Bearer ${token}`);
  const isOurs = ({ headers: { authorization = "" } }: IncomingMessage) => {
    const given = Buffer.from(authorization);
    return given.length === expected.length && timingSafeEqual(given, expected);
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
  const { job, args, until } = (await json(request)) as { job: string; args?: unknown; until?: number };
  if (args === undefined) {
    callee.server.calls.of(job)?.request.cancel("the job was cancelled");
    return void response.writeHead(204).end();
  }
  const call = CallArgs.parse(args);
  const told = await make(callee, job, call, until, (sent) => {
    // Without this header the edge treats the call as not sent, and its job sends it again. A call that is sent at most once
    // therefore needs the header before it is sent.
    response.writeHead(200, { "content-type": "application/json", [SENT]: JSON.stringify(sent) });
    if (call.once) response.flushHeaders();
  });
  response.end(JSON.stringify(told));
}

/** Makes a call, before `until` (in milliseconds since the epoch). @throws {Error} if it cannot be sent at once */
async function make(
  callee: Callee,
  jobName: string,
  args: CallArgs,
  until = Number.POSITIVE_INFINITY,
  sending: (sent: Sent) => void,
): Promise<Told> {
  const { server, log, mayRun } = callee;
  const left = new AbortController();
  const { signal } = left;
  const step = { signal, deadline: Number.POSITIVE_INFINITY, log, progress() {} } as unknown as Step;
  const request = { ...{ jobName, deadline: 0, signal, args }, answers: new Map(), questions: new Map() };
  const requests = new CallRequests(server, request);
  const prepared = mayRun(jobName).then((isFree) => (isFree ? requests.prepare(step) : undefined));
  const sent = await within(prepared, UNSENT);
  if (!sent || Date.now() > until) {
    left.abort();
    throw new Error("it has to wait");
  }
  sending(sent);
  // If the call was not sent or is lost, its job decides what to do: the job finds it here.
  const call = await requests
    .begin(step, { base: 0, request: { kind: "call" }, ...recordOf(sent, args) })
    .catch(() => undefined);
  if (!call) return { sent };
  const answered = call.event(0).catch(() => undefined);
  const event = await within(answered, AT_ONCE);
  const answer = event && (await answerIn(event, call, step, server.options.name));
  if (!answer) {
    limit(server, jobName, call);
    return { sent };
  }
  call.request.recorded();
  server.calls.forget(jobName);
  if (!call.progress) return { answer };
  const [done, total, message] = call.progress;
  return { answer, progress: { done, total, message } };
}

/** The result that a job would have, if the call has ended and its answer is small. */
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
  const isOver = result.resultType !== "input_required" && result.resultType !== "task" && result.task === undefined;
  if (!isOver || JSON.stringify(result).length > 2 * MOST) return undefined;
  const answer = await storedAnswer(step, result, name, call.logs);
  return sizeOf(answer as unknown as CallToolResult).text <= MOST ? answer : undefined;
}

/**
 * Ends the call after the usual time limit, so that a call whose job never comes does not hold its slot longer. While its job waits
 * for it, the job limits it, but not during its questions.
 */
function limit({ calls, options }: WrappedServer, jobName: string, call: CallInFlight): void {
  const end = () => {
    if (calls.of(jobName) === call && call.onProgress === undefined) call.request.cancel("it took too long");
  };
  const cancel = machineClock.after(options.timeout ?? HOUR, end);
  void call.ended.then(cancel);
}
