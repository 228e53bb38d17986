/**
 * Makes requests to a wrapped server that are not tool calls: for a resource, a prompt, a completion. Each request is a job,
 * because only workers reach the server.
 */

import { hashed, type Job } from "../../core/author/job.ts";
import type { DurablePromise } from "../../core/jobs/durable-promise.ts";
import { startJob } from "../../core/jobs/start.ts";
import { awaitSettled } from "../../core/jobs/waiting/waiting.ts";
import { canonical } from "../../core/resonate/json.ts";
import { partsIn } from "../../core/resonate/parts.ts";
import { MOST_WHOLE, wholeResult } from "../../core/tools/byte-range.ts";
import { protocolErrorIn } from "../../core/tools/content.ts";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import { uriOf } from "../../core/tools/results.ts";
import type { CallContext } from "../../core/tools/tool.ts";
import type { CallArgs, Method } from "../call-job.ts";

/** How long an answer serves further equal requests, in milliseconds, so that a caller that gave up waiting finds it. */
const FRESH_FOR = 10_000;
/** How long a request waits for its answer, in milliseconds. */
const PATIENCE = 45_000;

type Params = Record<string, unknown>;

/** A server as the target of such requests. */
export interface Asked {
  /** Its name in this deployment. */
  name: string;
  /** The job of a caller's own requests. */
  job: Job<CallArgs>;
}

/** Starts the job of a request, and waits for it until the time `until`. `onStarted` gets the job's name. */
export async function asked(
  { job }: Asked,
  method: Method,
  params: Params,
  { store, now, until, signal }: Pick<CallContext, "store" | "now" | "until" | "signal">,
  onStarted: (name: string) => void = () => {},
): Promise<DurablePromise> {
  const key = await hashed(canonical(params));
  const wanted: CallArgs = { tool: method, arguments: params, key, once: false, fresh_for: FRESH_FOR };
  let found: DurablePromise = await startJob(store, job, wanted, now);
  onStarted(found.name);
  if (found.state === "pending") {
    await awaitSettled(store, [found.name], {
      timeout: Math.max(0, until - now),
      signal,
      onSettled: (_name, settled) => {
        found = settled ?? found;
      },
    });
  }
  return found;
}

/** The server's answer to a request. @throws {ProtocolError} */
export async function ask(server: Asked, method: Method, params: Params, context: CallContext): Promise<Params> {
  const { name } = server;
  const { store, now, signal } = context;
  const until = Math.min(now + PATIENCE, context.until);
  const { state, value: said, id, name: jobName } = await asked(server, method, params, { store, now, until, signal });
  if (state === "pending") {
    throw new ProtocolError(ErrorCode.InternalError, `${name} takes long; it goes on: repeat the request.`);
  }
  const { uri } = params;
  const about = uri === undefined ? undefined : { uri };
  const parts = partsIn(said);
  if (parts && parts.characters > MOST_WHOLE) {
    const words = `${name} has ${parts.characters} characters of it, and up to ${MOST_WHOLE} are in one answer: it is read in parts, from ${uriOf(jobName)}?offset=0 on.`;
    throw new ProtocolError(ErrorCode.InvalidParams, words, about);
  }
  const value = parts ? await wholeResult(store, id, parts, signal) : said;
  const failure = protocolErrorIn(value);
  if (failure) throw new ProtocolError(failure.code, `${name}: ${failure.message}`, failure.data);
  if (state === "resolved") return { ...(value as Params) };
  const why = value instanceof Error ? value.message : "it gave no answer";
  throw new ProtocolError(ErrorCode.InvalidParams, `${name}: ${why}`, about);
}
