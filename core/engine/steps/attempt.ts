/** One attempt of a step, or one look of an `until`. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { MINUTE, NondeterminismError, type Step, type StepOptions } from "../../author/context.ts";
import { type Clock, words } from "../clock.ts";
import type { JournalWriter } from "../journal-writer.ts";
import type { Command, StepFunction } from "../replay/commands/command.ts";
import type { FunctionPass } from "../replay/function-pass.ts";
import type { StateReport } from "../replay/state-report.ts";
import { type Lease, noteLease, type Runtime } from "../runtime.ts";

/** The parts of an execution that its steps use. */
export interface StepParts {
  readonly runtime: Runtime;
  readonly lease: Lease;
  readonly clock: Clock;
  /** Aborted when the execution is over, or has to end. */
  readonly signal: AbortSignal;
  readonly writer: JournalWriter;
  readonly pass: FunctionPass;
  readonly report: StateReport;
}

/** How long an attempt holds a place of its `concurrency` while it waits for its `rate`, in milliseconds. */
const LONGEST_HELD = MINUTE;

/**
 * Runs `fn` when its `rate` and its `concurrency` allow it: outside of windows, where calls of the context are refused.
 * `onBegin` is awaited last, before `fn` may have an effect.
 */
export async function attempt(
  parts: StepParts,
  command: Command,
  fn: StepFunction,
  limits: Pick<StepOptions, "concurrency" | "rate" | "timeout"> = {},
  onBegin?: () => Promise<void>,
): Promise<unknown> {
  const { timeout = limits.concurrency && MINUTE } = limits;
  const { runtime, lease, signal, report, clock } = parts;
  const { owner = "", env, log, metrics, jobName, promiseOf } = runtime;
  const deadline = parts.pass.waitsUntil;
  const leave = await waitForLimits(parts, command, limits, timeout ?? MINUTE);
  const number = command.attempts + 1;
  const abort = new AbortController();
  command.abort = abort;
  if (signal.aborted || command.isOver) abort.abort(signal.reason);
  const at = { promiseId: lease.id, run: lease.run, version: lease.version, step: command.path, attempt: number };
  const files = runtime.files({ ...at, jobName, promiseOf, signal: abort.signal });
  const step: Step = {
    attempt: number,
    idempotencyKey: keyOf(lease.run, command.path),
    signal: abort.signal,
    deadline,
    owner,
    env,
    log,
    metrics,
    progress: (done, total, message) => report.progress(done, total, message),
    file: files.file,
    read: files.read,
  };
  noteLease(step, lease);
  try {
    await runtime.beforeAttempt?.();
    abort.signal.throwIfAborted();
    if (onBegin) {
      await onBegin();
      if (command.isOver) abort.abort();
      abort.signal.throwIfAborted();
    }
    const run = async () => fn(step);
    const running = runtime.runAttempt ? runtime.runAttempt(command.path, number, run) : run();
    const value = await (timeout === undefined ? running : inTime(clock, abort, running, timeout));
    await files.keep(value);
    return value;
  } catch (error) {
    await files.discard();
    throw error;
  } finally {
    // The signal of an ended attempt must not fire at the end of the execution.
    delete command.abort;
    leave?.();
  }
}

/**
 * Waits until the limits of a step allow an attempt of up to `time` milliseconds; resolves with the function that frees its
 * place. The rate comes last: attempts that had passed it while they waited for a place could begin together. An attempt that
 * waits long for its rate gives its place to others, whose steps may have no rate, and begins to wait again.
 */
async function waitForLimits(
  { runtime: { limit }, signal, clock }: StepParts,
  command: Command,
  { concurrency, rate }: Pick<StepOptions, "concurrency" | "rate">,
  time: number,
): Promise<(() => void) | undefined> {
  const place = concurrency && { ...checked(command, concurrency), time: time + (rate ? LONGEST_HELD : 0) };
  const pace = rate && checked(command, rate);
  for (;;) {
    const leave = place && (await limit?.(place, signal));
    if (!pace) return leave;
    const late = new AbortController();
    const cancel = leave && clock.after(LONGEST_HELD, () => late.abort(late));
    try {
      await limit?.(pace, AbortSignal.any([signal, late.signal]));
      return leave;
    } catch (error) {
      leave?.();
      if (error !== late) throw error;
    } finally {
      cancel?.();
    }
  }
}

/** Whether a failed attempt was cut off by the deadline, so that its outcome is unknown. */
export const isCutOff = ({ pass }: Pick<StepParts, "pass">): boolean => pass.isLate && !pass.isTold;

/** @throws {NondeterminismError} for a limit under which no attempt would ever begin */
function checked<T extends { name: string; limit: number; per?: number }>({ path }: Command, limit: T): T {
  const { name, limit: most, per = 1 } = limit;
  if (typeof name === "string" && name !== "" && Number.isSafeInteger(most) && most >= 1 && per >= 1) return limit;
  throw new NondeterminismError(
    `step "${path}": a concurrency takes { name, limit }, a rate { name, limit, per }: a limit from 1 on, and milliseconds`,
  );
}

async function inTime<T>(clock: Clock, abort: AbortController, running: Promise<T>, timeout: number): Promise<T> {
  const over = Promise.withResolvers<never>();
  const cancel = clock.after(timeout, () => {
    const error = new Error(`no outcome within ${words(timeout)}`);
    over.reject(error);
    abort.abort(error);
  });
  try {
    return await Promise.race([running, over.promise]);
  } finally {
    cancel();
  }
}

function keyOf(id: string, path: string): string {
  return bytesToHex(sha256(utf8ToBytes(`${id}\n${path}`)).subarray(0, 16));
}
