/**
 * Makes requests to a wrapped server that are not tool calls: for a resource, a prompt, a completion. Each request is a job,
 * because only workers reach the server.
 */

import { hashed, type Job } from "../../core/author/index.ts";
import { awaitSettled, type DurablePromise, startJob } from "../../core/jobs/index.ts";
import { canonical, partsIn } from "../../core/resonate/index.ts";
import {
  type CallContext,
  completeResult,
  ErrorCode,
  MAX_WHOLE_CHARACTERS,
  ProtocolError,
  protocolErrorIn,
  uriOf,
} from "../../core/tools/index.ts";
import type { CallArgs, Method } from "../call-job.ts";

/** How long an answer serves further equal requests, in milliseconds, so that a caller that gave up waiting finds it. */
const FRESH_MS = 10_000;
/** How long a request waits for its answer, in milliseconds. */
const ANSWER_TIMEOUT_MS = 45_000;

type Params = Record<string, unknown>;

/** A server as the target of such requests. */
export interface RequestTarget {
  /** Its name in this deployment. */
  name: string;
  /** The job of a caller's own requests. */
  job: Job<CallArgs>;
}

/** Starts the job of a request, and waits for it until the time `until`. `onStarted` gets the job's name. */
export async function runRequest(
  { job }: RequestTarget,
  method: Method,
  params: Params,
  { store, now, until, signal }: Pick<CallContext, "store" | "now" | "until" | "signal">,
  onStarted: (name: string) => void = () => {},
): Promise<DurablePromise> {
  const key = await hashed(canonical(params));
  const args: CallArgs = { tool: method, arguments: params, key, once: false, fresh_for: FRESH_MS };
  let promise: DurablePromise = await startJob(store, job, args, now);
  onStarted(promise.name);
  if (promise.state === "pending") {
    await awaitSettled(store, [promise.name], {
      timeout: Math.max(0, until - now),
      signal,
      onSettled: (_name, settlement) => {
        promise = settlement ?? promise;
      },
    });
  }
  return promise;
}

/** The server's answer to a request. @throws {ProtocolError} */
export async function request(
  target: RequestTarget,
  method: Method,
  params: Params,
  { store, now, signal, until }: CallContext,
): Promise<Params> {
  const context = { store, now, until: Math.min(now + ANSWER_TIMEOUT_MS, until), signal };
  const { state, value, id, name: jobName } = await runRequest(target, method, params, context);
  const { name } = target;
  if (state === "pending") {
    throw new ProtocolError(ErrorCode.InternalError, `${name} takes long; it continues: repeat the request.`);
  }
  const { uri } = params;
  const errorData = uri === undefined ? undefined : { uri };
  const parts = partsIn(value);
  if (parts && parts.characters > MAX_WHOLE_CHARACTERS) {
    const message = `${name} has ${parts.characters} characters of it, and up to ${MAX_WHOLE_CHARACTERS} are in one answer: it is read in parts, from ${uriOf(jobName)}?offset=0 on.`;
    throw new ProtocolError(ErrorCode.InvalidParams, message, errorData);
  }
  const answer = parts ? await completeResult(store, id, parts, signal) : value;
  const failure = protocolErrorIn(answer);
  if (failure) throw new ProtocolError(failure.code, `${name}: ${failure.message}`, failure.data);
  if (state === "resolved") return { ...(answer as Params) };
  const why = answer instanceof Error ? answer.message : "it gave no answer";
  throw new ProtocolError(ErrorCode.InvalidParams, `${name}: ${why}`, errorData);
}
