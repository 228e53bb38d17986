/** Tasks at a wrapped server, looked at until something has become of them. */
import { NonRetryableError, SECOND, type Step } from "../../core/definitions/context.ts";
import { SETTLED } from "../../core/engine/runtime.ts";
import type { Connection } from "./connection.ts";
import { Gone, RpcError } from "./errors.ts";
import type { LiveCall } from "./live.ts";
import { keptAnswer } from "./outcome.ts";
import { requestId } from "./request-state.ts";
import { elapsed, type JsonObject, type TaskThere } from "./segment.ts";

/** How often a task is looked at unless its server says, and the bounds of what it may say; in milliseconds. */
const POLL = { usual: SECOND, least: 200, most: 30 * SECOND };
/** How long a task may wait for an answer while no question comes, until that counts as lost; in milliseconds. */
const LOST_AFTER = 20 * SECOND;

const METHOD_NOT_FOUND = -32601;

const pauseOf = (every: number = POLL.usual) => Math.min(Math.max(every, POLL.least), POLL.most);

type Connect = () => Promise<Connection>;

const unknownTask = (taskId: string, error: Error) =>
  new Gone(`the server knows no task ${taskId} any more, which the call had become (${error.message})`);

/** Tells whoever looks what the server says of a task, once each time. */
function teller({ progress }: Step): (task: JsonObject) => void {
  let said: unknown;
  return ({ statusMessage }) => {
    if (statusMessage === said || typeof statusMessage !== "string") return;
    said = statusMessage;
    progress(0, undefined, statusMessage);
  };
}

/** Looks at a task of the 2026 revision until it has ended, or asks something that it has not been told. */
export async function watchTask(
  connect: Connect,
  step: Step,
  { taskId, every, place }: TaskThere,
  answered: ReadonlySet<string>,
): Promise<
  | { kind: "result"; result: JsonObject }
  | { kind: "error"; code: number; message: string }
  | { kind: "input"; requests: JsonObject }
> {
  const { signal } = step;
  const tell = teller(step);
  const ask = (connection: Connection, method: string) =>
    connection.request(method, { taskId }, {}, requestId(), place).result;
  for (;;) {
    const connection = await connect();
    if (signal.aborted) {
      if (signal.reason === SETTLED) await ask(connection, "tasks/cancel").catch(() => {});
      throw new Error("the job is no longer run here");
    }
    const task = await ask(connection, "tasks/get").catch((error) => {
      throw error instanceof RpcError ? unknownTask(taskId, error) : error;
    });
    if (task.status === "completed")
      return { kind: "result", result: await keptAnswer(step, task.result as JsonObject) };
    if (task.status === "failed") {
      const { code, message } = task.error as { code: number; message: string };
      return { kind: "error", code, message };
    }
    if (task.status === "cancelled")
      throw new NonRetryableError(`the server has cancelled the task ${taskId}, which the call had become`);
    const open = Object.entries((task.inputRequests ?? {}) as JsonObject).filter(([key]) => !answered.has(key));
    if (task.status === "input_required" && open.length > 0) {
      return { kind: "input", requests: Object.fromEntries(open) };
    }
    tell(task);
    await elapsed(pauseOf(every), signal);
  }
}

/** @throws {Gone} when the server knows no such task */
export async function knownTask(connect: Connect, { taskId, place }: TaskThere): Promise<void> {
  const connection = await connect();
  await connection.request("tasks/get", { taskId }, {}, requestId(), place).result.catch((error) => {
    if (!(error instanceof RpcError)) throw error;
    if (error.code !== METHOD_NOT_FOUND) throw unknownTask(taskId, error);
  });
}

/** What a request for the result of a task of the 2025-11-25 revision does not tell. */
export class TaskEnded extends Error {
  override name = "TaskEnded";
}

/**
 * Looks at a task of the 2025-11-25 revision while its result is asked for. Its server tells a question once, over a stream
 * that may have been a dead worker's, and the end over one that may not be this one.
 *
 * @throws {TaskEnded} when it has ended, and the request still waits
 * @throws {Gone} when the server knows no such task, or the task waits for an answer to a question that nobody has heard
 */
export async function watchLegacyTask(
  connect: Connect,
  step: Step,
  { taskId, place, every }: TaskThere,
  live: LiveCall,
  /** Whether a question of the task's is with the caller. */
  isAsking: boolean,
): Promise<never> {
  const { signal } = step;
  const tell = teller(step);
  const ask = async (method: string) => (await connect()).request(method, { taskId }, {}, requestId(), place).result;
  let waitsSince: number | undefined;
  let hasEnded = false;
  for (;;) {
    await elapsed(pauseOf(every), signal);
    if (signal.aborted || live.isOver) return never();
    const task = await ask("tasks/get").catch((error: Error) => error);
    // What else is wrong with the connection, the request for the result finds out.
    if (task instanceof Error) {
      if (!(task instanceof RpcError)) continue;
      if (task.code === METHOD_NOT_FOUND) return never();
      throw unknownTask(taskId, task);
    }
    tell(task);
    if (/^(completed|failed|cancelled)$/.test(String(task.status))) {
      if (hasEnded) throw new TaskEnded(`the task ${taskId} has ended`);
      hasEnded = true;
    }
    if (task.status !== "input_required" || isAsking) waitsSince = undefined;
    else waitsSince ??= Date.now();
    if (waitsSince === undefined || Date.now() - waitsSince < LOST_AFTER) continue;
    await ask("tasks/cancel").catch(() => {});
    throw new Gone(
      `the task ${taskId}, which the call had become, waits for the answer to a question that got lost with the worker, or the connection, that it came to. The server does not repeat it, and was told to cancel the task`,
    );
  }
}

/** Others decide. */
const never = () => new Promise<never>(() => {});
