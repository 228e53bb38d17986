/** Polls tasks at a wrapped server. */
import { NonRetryableError, RetryableError, SECOND, type Step } from "../../../core/definitions/context.ts";
import { SETTLED } from "../../../core/engine/runtime.ts";
import { isFinal } from "../../../core/engine/values.ts";
import { backoff, pause } from "../../../core/store/pacing/backoff.ts";
import type { RpcFailure } from "../../../core/tools/content.ts";
import type { Connection } from "../connection/connection.ts";
import { OutcomeUnknown, RpcError } from "../connection/errors.ts";
import { requestId } from "../connection/open-request.ts";
import type { JsonObject, RemoteTask } from "./awaited-request.ts";
import type { CallInFlight } from "./call-in-flight.ts";
import { storedAnswer, told } from "./outcome.ts";

/** The default poll interval, and the limits on the intervals that servers request; in milliseconds. */
const POLL = { usual: SECOND, least: 200, most: 30 * SECOND };
/** How long a server may take to say how a task is, in milliseconds. */
const ANSWER = 30 * SECOND;
/** How long a task may wait for an answer to a question that has not arrived here, in milliseconds. Then the question counts as lost. */
const LOST_AFTER = 20 * SECOND;

const METHOD_NOT_FOUND = -32601;

const pauseOf = (every: number = POLL.usual) => Math.min(Math.max(every, POLL.least), POLL.most);

type Connect = () => Promise<Connection>;

const unknownTask = (taskId: string, error: Error) =>
  new OutcomeUnknown(`the server no longer knows the task ${taskId}, which the call had become (${error.message})`);

/** Reports each new status message of a task as progress. */
function reporter({ progress }: Step): (task: JsonObject) => void {
  let last: unknown;
  return ({ statusMessage }) => {
    if (statusMessage === last || typeof statusMessage !== "string") return;
    last = statusMessage;
    progress(0, undefined, statusMessage);
  };
}

/**
 * Polls a task of the 2026 revision until it ends, or asks a question that has no answer yet. A server that cannot be reached is
 * polled on: a step's retries end at a time after the first failure, however long the server has answered since. A task whose state
 * has been unknown for `timeout` milliseconds is given up, and cancelled.
 */
export async function watchTask(
  connect: Connect,
  step: Step,
  { taskId, every, place: session }: RemoteTask,
  answered: ReadonlySet<string>,
  server: string,
  timeout: number,
): Promise<
  { kind: "result"; result: JsonObject } | ({ kind: "error" } & RpcFailure) | { kind: "input"; requests: JsonObject }
> {
  const { signal } = step;
  const report = reporter(step);
  /** Resolves with undefined if the answer does not come in time, or if the job ends. */
  const ask = async (method: string) => {
    const connection = await connect();
    if (signal.aborted && method === "tasks/get") return undefined;
    const { result, leave } = connection.request(method, { taskId }, {}, requestId(), session);
    const left = Promise.withResolvers<undefined>();
    const giveUp = () => {
      left.resolve(undefined);
      leave();
    };
    const timer = setTimeout(giveUp, ANSWER);
    signal.addEventListener("abort", giveUp, { once: true });
    return Promise.race([left.promise, result]).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    });
  };
  const cancel = () => ask("tasks/cancel").catch(() => {});
  let end = Date.now() + timeout;
  let failures = 0;
  let why = "";
  for (;;) {
    if (signal.aborted) {
      if (signal.reason === SETTLED || Date.now() >= step.deadline - SECOND) await cancel();
      throw new Error("the job is no longer run here");
    }
    if (Date.now() >= end) {
      await cancel();
      throw new NonRetryableError(`${server}: it did not answer within ${Math.round(timeout / SECOND)} s${why}`);
    }
    const task = await ask("tasks/get").catch((error: Error) => error);
    if (!task) continue;
    if (task instanceof Error) {
      if (task instanceof RpcError) throw unknownTask(taskId, task);
      if (task instanceof OutcomeUnknown || isFinal(task)) throw task;
      if (task instanceof RetryableError) {
        // The connection pauses, so nothing new is known of the server.
        await pause(Math.min(task.retryAfter, POLL.most), signal);
        continue;
      }
      failures += 1;
      why = ` (${task.message})`;
      step.log.warn("task not polled", { attempt: failures, reason: task.message });
      report({ statusMessage: task.message });
      await pause(backoff(failures, { base: SECOND, max: POLL.most }), signal);
      continue;
    }
    if (failures > 0) report({ statusMessage: `${server} answers again` });
    failures = 0;
    why = "";
    if (task.status === "completed") return { kind: "result", result: await storedAnswer(step, task.result, server) };
    if (task.status === "failed") return { kind: "error", ...told(new RpcError(task.error)) };
    if (task.status === "cancelled")
      throw new NonRetryableError(`the server has cancelled the task ${taskId}, which the call had become`);
    const open = Object.entries((task.inputRequests ?? {}) as JsonObject).filter(([key]) => !answered.has(key));
    if (task.status === "input_required" && open.length > 0) {
      return { kind: "input", requests: Object.fromEntries(open) };
    }
    report(task);
    await pause(pauseOf(every), signal);
    end = Date.now() + timeout;
  }
}

/** @throws {OutcomeUnknown} when the server knows no such task */
export async function checkTask(connect: Connect, { taskId, place: session }: RemoteTask): Promise<void> {
  const connection = await connect();
  await connection.request("tasks/get", { taskId }, {}, requestId(), session).result.catch((error) => {
    if (!(error instanceof RpcError)) throw error;
    if (error.code !== METHOD_NOT_FOUND) throw unknownTask(taskId, error);
  });
}

/** A task of the 2025-11-25 revision has ended, and the request for its result got no answer. */
export class TaskEnded extends Error {
  override name = "TaskEnded";
}

/**
 * Polls a task of the 2025-11-25 revision while a request for its result is open. The polling is needed because the server sends a
 * question once, perhaps over the stream of a dead worker, and may announce the task's end over a stream that this worker lacks.
 *
 * @throws {TaskEnded} when the task has ended, and the request still waits
 * @throws {OutcomeUnknown} when the server knows no such task, or the task waits for the answer to a question that was lost
 */
export async function watchLegacyTask(
  connect: Connect,
  step: Step,
  { taskId, place: session, every }: RemoteTask,
  call: CallInFlight,
  /** Whether the caller already has a question of the task. */
  isAsking: boolean,
): Promise<never> {
  const { signal } = step;
  const report = reporter(step);
  const ask = async (method: string) => (await connect()).request(method, { taskId }, {}, requestId(), session).result;
  let waitsSince: number | undefined;
  let hasEnded = false;
  for (;;) {
    await pause(pauseOf(every), signal);
    if (signal.aborted || call.isOver) return never();
    const task = await ask("tasks/get").catch((error: Error) => error);
    // The request for the result reports other problems of the connection.
    if (task instanceof Error) {
      if (!(task instanceof RpcError)) continue;
      if (task.code === METHOD_NOT_FOUND) return never();
      throw unknownTask(taskId, task);
    }
    report(task);
    if (/^(completed|failed|cancelled)$/.test(String(task.status))) {
      if (hasEnded) throw new TaskEnded(`the task ${taskId} has ended`);
      hasEnded = true;
    }
    if (task.status !== "input_required" || isAsking) waitsSince = undefined;
    else waitsSince ??= Date.now();
    if (waitsSince === undefined || Date.now() - waitsSince < LOST_AFTER) continue;
    await ask("tasks/cancel").catch(() => {});
    throw new OutcomeUnknown(
      `the task ${taskId}, which the call had become, waits for an answer to a question that was lost with the worker or the connection. The server does not repeat it, and was told to cancel the task`,
    );
  }
}

/** Never settles, so that the request for the result decides. */
const never = () => new Promise<never>(() => {});
