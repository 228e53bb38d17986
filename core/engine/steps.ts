/** The work of calls: attempts of steps with their pauses, and the looks of `until`. */

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { noteLease } from "../author/chunks.ts";
import { MINUTE, type Retry, RuleBroken, SECOND, type Step, type StepOptions } from "../definitions/context.ts";
import { decodeValue } from "../store/codec.ts";
import { lookId } from "../store/ids.ts";
import { type Command, words } from "./command.ts";
import type { Execution } from "./execution.ts";
import { pauseAfter } from "./retry.ts";
import { LeaseLost } from "./runtime.ts";
import { isFinal, storable, toStored } from "./values.ts";

type Fn<T> = (step: Step) => T | Promise<T>;

/** Runs a step to its outcome, or to the pause before its next attempt. */
export async function performStep<T>(pass: Execution, op: Command, fn: Fn<T>, options: StepOptions): Promise<void> {
  const kind = op.kind as "step" | "start";
  const { path } = op;
  const { retry, atMostOnce = false } = options;
  const earlier = pass.around.memo?.get(path);
  if (earlier?.event.kind === kind && !earlier.event.error) {
    await pass.record(op, { kind, op: path, value: earlier.value });
    return;
  }
  if (atMostOnce) {
    if (op.begun) {
      const message = `it was begun at ${new Date(op.begun.at).toISOString()}, and whether it had its effect is unknown: it is not repeated`;
      await pass.record(op, { kind, op: path, error: { name: "NonRetryableError", message } });
      return;
    }
    await pass.record(op, { kind: "begin", of: "step", op: path, at: pass.clock.now() });
  }
  try {
    const value = storable(await inTurn(pass, op, fn, options), `step "${path}"`);
    await pass.record(op, { kind, op: path, ...(value !== undefined && { value }) });
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (op.isOver || pass.signal.aborted) return;
    if (error instanceof RuleBroken) pass.breaks(error.message);
    else await failed(pass, op, kind, error, atMostOnce ? false : retry);
  }
}

async function failed(
  pass: Execution,
  op: Command,
  kind: "step" | "start",
  error: unknown,
  retry: Retry | false | undefined,
) {
  const attempts = op.attempts + 1;
  const now = pass.clock.now();
  const since = op.attempts === 0 ? now : op.failingSince;
  const { deadline, log } = pass.around;
  const pause = pauseAfter(error, retry, { attempts, since, now, deadline });
  const gaveUp = pause === undefined && retry !== false && !isFinal(error);
  const stored = toStored(error, gaveUp ? attempts : undefined);
  const fields = { step: op.path, attempt: attempts, reason: stored.message };
  pass.around.onFailure?.(error, { ...fields, ...(pause !== undefined && { retry_in_ms: pause }) });
  if (pause === undefined) {
    log.warn("step failed", fields);
    await pass.record(op, { kind, op: op.path, error: stored });
  } else {
    log.warn("attempt failed", { ...fields, retry_in_ms: pause });
    await pass.record(
      op,
      { kind: "retry", op: op.path, attempt: attempts, since, error: stored },
      { due: Math.ceil(now + pause) },
    );
  }
}

/** One attempt, when it may be. */
async function inTurn<T>(pass: Execution, op: Command, fn: Fn<T>, { limit, timeout }: StepOptions): Promise<T> {
  if (!limit) return attempt(pass, op, fn, timeout);
  const time = timeout ?? MINUTE;
  const done = await pass.around.limit?.({ ...limit, time }, pass.signal);
  try {
    return await attempt(pass, op, fn, time);
  } finally {
    done?.();
  }
}

/** One attempt. Begun outside of a window, so that what it calls of the context is refused. */
async function attempt<T>(pass: Execution, op: Command, fn: Fn<T>, timeout: number | undefined): Promise<T> {
  const { deadline, owner = "", env, log, metrics } = pass.around;
  const number = op.attempts + 1;
  const abort = new AbortController();
  op.abort = abort;
  pass.attempts.add(abort);
  if (pass.signal.aborted) abort.abort(pass.signal.reason);
  const step: Step = {
    attempt: number,
    idempotencyKey: keyOf(pass.lease.id, op.path),
    signal: abort.signal,
    deadline,
    owner,
    env,
    log,
    metrics,
    progress: (done, total, message) =>
      pass.tell({ done, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }),
  };
  noteLease(step, pass.lease);
  try {
    await pass.around.beforeAttempt?.();
    abort.signal.throwIfAborted();
    const run = async () => fn(step);
    const running = pass.around.trace ? pass.around.trace(op.path, number, run) : run();
    return await (timeout === undefined ? running : inTime(pass, abort, running, timeout));
  } finally {
    pass.attempts.delete(abort);
  }
}

/** What an attempt comes to, unless it takes longer than it may. */
async function inTime<T>(pass: Execution, abort: AbortController, running: Promise<T>, timeout: number): Promise<T> {
  const over = Promise.withResolvers<never>();
  const callOff = pass.clock.after(timeout, () => {
    const error = new Error(`no outcome within ${words(timeout)}`);
    over.reject(error);
    abort.abort(error);
  });
  try {
    return await Promise.race([running, over.promise]);
  } finally {
    callOff();
  }
}

/**
 * The looks of an `until` that are due. Looks are due at whole multiples of `every` after the first, and the pause before
 * each is a promise that is found by its number: none of them is a record, so that a look costs the same however many
 * there were before.
 */
export async function performLooks<T>(
  pass: Execution,
  op: Command,
  { every, for: patience }: { every: number; for?: number },
  check: Fn<T>,
): Promise<void> {
  const kind = "until";
  if (!op.begun) await pass.record(op, { kind: "begin", of: kind, op: op.path, at: pass.clock.now() });
  const { n, at } = op.begun ?? { n: 0, at: 0 };
  const end = Math.min(at + (patience ?? Number.POSITIVE_INFINITY), pass.around.deadline - SECOND);
  for (let k = Math.floor((pass.clock.now() - at) / every) + 1; ; k++) {
    const due = Math.ceil(at + k * every);
    const isLast = due > end;
    const id = lookId(pass.lease.id, n, k);
    // Whoever makes the next pause makes the look before it: a pass that something else has woken finds it made.
    const by = crypto.randomUUID();
    const pause = isLast ? undefined : await pass.lease.create(id, { by }, { due });
    const isOurs = !pause || (decodeValue(pause.param) as { by?: unknown } | undefined)?.by === by;
    if (!isOurs && pause.state !== "pending") continue;
    if (isOurs && (await look(pass, op, check))) return;
    if (isLast) {
      const why = op.lastError === undefined ? "" : `: ${op.lastError}`;
      const message = `"${op.path}" did not come about within ${words(Math.max(end - at, 0))}${why}`;
      await pass.record(op, { kind, op: op.path, error: { name: "NonRetryableError", message } });
      return;
    }
    op.pause = { id, due };
    op.isRunning = false;
    return;
  }
}

/** Whether it was the last look: something was found, or can never be. */
async function look<T>(pass: Execution, op: Command, check: Fn<T>): Promise<boolean> {
  const kind = "until";
  try {
    const value = storable(await attempt(pass, op, check, undefined), `"${op.path}"`);
    op.attempts += 1;
    delete op.lastError;
    if (!value) return false;
    await pass.record(op, { kind, op: op.path, value });
    return true;
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (op.isOver || pass.signal.aborted) return true;
    if (error instanceof RuleBroken) {
      pass.breaks(error.message);
      return true;
    }
    op.attempts += 1;
    const stored = toStored(error);
    if (isFinal(error)) {
      await pass.record(op, { kind, op: op.path, error: stored });
      return true;
    }
    op.lastError = stored.message;
    pass.around.log.warn("look failed", { step: op.path, reason: stored.message });
    return false;
  }
}

function keyOf(id: string, path: string): string {
  return bytesToHex(sha256(utf8ToBytes(`${id}\n${path}`)).subarray(0, 16));
}
