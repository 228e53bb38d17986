/** Polls tasks at a wrapped server. */
import { METHOD_NOT_FOUND } from "@modelcontextprotocol/client";
import { isFinal, NonRetryableError, RetryableError, SECOND, type Step } from "../../../core/author/index.ts";
import { SETTLED } from "../../../core/engine/index.ts";
import { backoff, pause, within } from "../../../core/resonate/index.ts";
import type { Connection } from "../connection/connection.ts";
import { hasLostSession, JobMoved, OutcomeUnknown, RpcError } from "../host/errors.ts";
import type { JsonObject, Session } from "../host/open-request.ts";
import type { RemoteTask, StepOutcome } from "./awaited-request.ts";
import type { CallInFlight } from "./call-in-flight.ts";
import { limitedError, MAX_MESSAGE_CHARACTERS, storeAnswer } from "./outcome.ts";

/** The default poll interval, and the limits on the intervals that servers request; in milliseconds. */
const DEFAULT_POLL_INTERVAL_MS = SECOND;
const MIN_POLL_INTERVAL_MS = 200;
const MAX_POLL_INTERVAL_MS = 30 * SECOND;
/** How long a server may take to answer a request about a task, in milliseconds. */
const ANSWER_TIMEOUT_MS = 30 * SECOND;
/** How long a task may wait for an answer to a question that has not arrived here, in milliseconds. Then the question counts as lost. */
const LOST_QUESTION_TIMEOUT_MS = 20 * SECOND;

const pauseOf = (pollInterval: number = DEFAULT_POLL_INTERVAL_MS) =>
  Math.min(Math.max(pollInterval, MIN_POLL_INTERVAL_MS), MAX_POLL_INTERVAL_MS);

/** Connects to the server. `lost`: a connection whose session the server has forgotten. */
type Connect = (lost?: Connection) => Promise<Connection>;

const unknownTask = (taskId: string, error: Error) =>
  new OutcomeUnknown(`the server no longer knows the task ${taskId}, which the call had become (${error.message})`);

/**
 * The answer to a request about a task; undefined if it does not come in time, or before `signal` aborts. A server that has forgotten
 * the task's session may know the task in a new one.
 */
export async function requestTask(
  connect: Connect,
  method: string,
  { taskId, session }: RemoteTask,
  { signal, ...params }: { signal?: AbortSignal; inputResponses?: JsonObject } = {},
): Promise<JsonObject | undefined> {
  const connection = await connect();
  if (signal?.aborted) return undefined;
  const send = (to: Connection, of: Session) => {
    const { result, leave } = to.request(method, { taskId, ...params }, { session: of });
    return within(result, ANSWER_TIMEOUT_MS, signal).finally(leave);
  };
  return send(connection, session).catch(async (error) => {
    if (!hasLostSession(error)) throw error;
    const isCurrent = session.sessionId === connection.session.sessionId;
    const renewed = await connect(isCurrent ? connection : undefined);
    return send(renewed, renewed.session);
  });
}

/** Reports each new status message of a task as progress. */
function reporter({ progress }: Step): (task: JsonObject) => void {
  let last: unknown;
  return ({ statusMessage }) => {
    if (statusMessage === last || typeof statusMessage !== "string") return;
    last = statusMessage;
    progress(0, undefined, statusMessage.slice(0, MAX_MESSAGE_CHARACTERS));
  };
}

/**
 * Polls a task of the 2026 revision until it finishes, or asks a question that has no answer yet. A server that cannot be reached is
 * polled on: a step's retries end at a time after the first failure, however long the server has answered since. A task whose state
 * has been unknown for `timeout` milliseconds is given up, and cancelled.
 */
export async function watchTask(
  connect: Connect,
  step: Step,
  task: RemoteTask,
  answeredKeys: ReadonlySet<string>,
  server: string,
  timeout: number,
): Promise<StepOutcome> {
  const { taskId, pollInterval } = task;
  const { signal } = step;
  const report = reporter(step);
  const cancel = () => requestTask(connect, "tasks/cancel", task).catch(() => {});
  let end = Date.now() + timeout;
  let failures = 0;
  let why = "";
  for (;;) {
    if (signal.aborted) {
      if (signal.reason === SETTLED || Date.now() >= step.deadline - SECOND) await cancel();
      throw new JobMoved();
    }
    if (Date.now() >= end) {
      await cancel();
      throw new NonRetryableError(`${server}: it did not answer within ${Math.round(timeout / SECOND)} s${why}`);
    }
    const state = await requestTask(connect, "tasks/get", task, { signal }).catch((error: Error) => error);
    if (!state) continue;
    if (state instanceof Error) {
      if (state instanceof RpcError) throw unknownTask(taskId, state);
      if (state instanceof OutcomeUnknown || isFinal(state)) throw state;
      if (state instanceof RetryableError) {
        // The connection pauses, so nothing new is known of the server.
        await pause(Math.min(state.retryAfter, MAX_POLL_INTERVAL_MS), signal);
        continue;
      }
      failures += 1;
      why = ` (${state.message})`;
      step.log.warn("task not polled", { attempt: failures, reason: state.message });
      report({ statusMessage: state.message });
      await pause(backoff(failures, { base: SECOND, max: MAX_POLL_INTERVAL_MS }), signal);
      continue;
    }
    if (failures > 0) report({ statusMessage: `${server} answers again` });
    failures = 0;
    why = "";
    const outcome = await outcomeOfState(step, taskId, state, answeredKeys, server);
    if (outcome) return outcome;
    report(state);
    await pause(pauseOf(pollInterval), signal);
    end = Date.now() + timeout;
  }
}

/** What the state of a task means for its job; undefined if the task continues. @throws {NonRetryableError} if it was cancelled */
async function outcomeOfState(
  step: Step,
  taskId: string,
  { status, result, error, inputRequests }: JsonObject,
  answeredKeys: ReadonlySet<string>,
  server: string,
): Promise<StepOutcome | undefined> {
  if (status === "completed") return { kind: "result", result: await storeAnswer(step, result, server) };
  if (status === "failed") return { kind: "error", ...limitedError(new RpcError(error)) };
  if (status === "cancelled") {
    throw new NonRetryableError(`the server has cancelled the task ${taskId}, which the call had become`);
  }
  const open = Object.entries((inputRequests ?? {}) as JsonObject).filter(([key]) => !answeredKeys.has(key));
  if (status !== "input_required" || open.length === 0) return undefined;
  return { kind: "input", requests: Object.fromEntries(open) };
}

/** @throws {OutcomeUnknown} when the server knows no such task */
export async function checkTask(connect: Connect, task: RemoteTask): Promise<void> {
  await requestTask(connect, "tasks/get", task).catch((error) => {
    if (!(error instanceof RpcError)) throw error;
    if (error.code !== METHOD_NOT_FOUND) throw unknownTask(task.taskId, error);
  });
}

/** A task of the 2025-11-25 revision has finished, and the request for its result got no answer. */
export class TaskFinished extends Error {
  override name = "TaskFinished";
}

/**
 * Polls a task of the 2025-11-25 revision while a request for its result is open. The polling is needed because the server sends a
 * question once, perhaps over the stream of a dead worker, and may announce that the task has finished over a stream that this worker lacks.
 *
 * @throws {TaskFinished} when the task has finished, and the request still waits
 * @throws {OutcomeUnknown} when the server knows no such task, or the task waits for the answer to a question that was lost
 */
export async function watchLegacyTask(
  connect: Connect,
  step: Step,
  task: RemoteTask,
  call: CallInFlight,
  /** Whether the caller already has a question of the task. */
  isAsking: boolean,
): Promise<never> {
  const { taskId, pollInterval } = task;
  const { signal } = step;
  const report = reporter(step);
  let waitsSince: number | undefined;
  let hasFinished = false;
  for (;;) {
    await pause(pauseOf(pollInterval), signal);
    if (signal.aborted || call.isOver) return never();
    const state = await requestTask(connect, "tasks/get", task, { signal }).catch((error: Error) => error);
    // The request for the result reports other problems of the connection.
    if (!state) continue;
    if (state instanceof Error) {
      if (!(state instanceof RpcError)) continue;
      if (state.code === METHOD_NOT_FOUND) return never();
      throw unknownTask(taskId, state);
    }
    report(state);
    if (/^(completed|failed|cancelled)$/.test(String(state.status))) {
      if (hasFinished) throw new TaskFinished(`the task ${taskId} has finished`);
      hasFinished = true;
    }
    if (state.status !== "input_required" || isAsking) waitsSince = undefined;
    else waitsSince ??= Date.now();
    if (waitsSince === undefined || Date.now() - waitsSince < LOST_QUESTION_TIMEOUT_MS) continue;
    await requestTask(connect, "tasks/cancel", task).catch(() => {});
    throw new OutcomeUnknown(
      `the task ${taskId}, which the call had become, waits for an answer to a question that was lost with the worker or the connection. The server does not repeat it, and was asked to cancel the task`,
    );
  }
}

/** Never settles, so that the request for the result decides. */
const never = () => new Promise<never>(() => {});
