/** The work on a step, up to its outcome or to the pause before the next attempt, and the attempts at it. */

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { NondeterminismError, type Step, type StepOptions, TimeoutError } from "../../author/context.ts";
import { isFinal, storable, toStored, UnstorableValue, wordsOf } from "../../author/values.ts";
import { type Clock, durationInWords } from "../clock.ts";
import { type Lease, LeaseLost, leaseOfStep } from "../job-lease.ts";
import type { JournalWriter } from "../journal-writer.ts";
import type { Command, StepFunction, Work } from "../replay/commands/commands.ts";
import type { FunctionPass } from "../replay/function-pass.ts";
import type { StateReport } from "../replay/state-report.ts";
import type { Runtime } from "../runtime.ts";
import type { Attempt, StepFailure, StepOutcome, StepResult, StepWork } from "../step-feature.ts";
import type { AttemptRun, StepLayers } from "../step-layers.ts";
import type { Doubts } from "./doubts.ts";
import { pauseAfter } from "./retry.ts";

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
  readonly layers: StepLayers;
  readonly doubts: Doubts;
}

export async function performStep(
  parts: StepParts,
  command: Command,
  { fn, options }: Extract<Work, { do: "attempt" }>,
): Promise<void> {
  const kind = command.kind as StepWork["kind"];
  const op = command.path;
  const step = {
    kind,
    path: op,
    options,
    begunAt: command.beginning?.at,
    job: parts.runtime,
    retry: options.retry,
    run: () => tryOnce(parts, command, fn, step),
  };
  const outcome = await parts.layers.step(step);
  if (!outcome) return;
  if ("error" in outcome) return recordFailure(parts, command, step, outcome);
  const entry = { kind, op, ...outcome };
  if (command.isCut) parts.writer.leave(command, entry);
  else await parts.writer.post(command, entry);
}

async function tryOnce(
  parts: StepParts,
  command: Command,
  fn: StepFunction,
  { path, options, retry }: StepWork,
): Promise<StepOutcome | undefined> {
  const { clock, pass, signal, writer } = parts;
  try {
    const { value, ...more } = await attempt(parts, command, fn, options);
    return { value: storable(value, `step "${path}"`), ...more };
  } catch (error) {
    if (command.isCut && signal.aborted) writer.leave(command);
    if (error instanceof LeaseLost) throw error;
    if (command.isOver || signal.aborted) return undefined;
    if (isCutOff(parts)) {
      command.isRunning = false;
      return undefined;
    }
    if (error instanceof NondeterminismError && !(error instanceof UnstorableValue)) {
      pass.ruleBroken(error.message);
      return undefined;
    }
    const now = clock.now();
    const attempts = command.attempts + 1;
    const failure = { attempts, since: failingSince(command, now), now, deadline: pass.waitsUntil };
    return { error, attempt: attempts, retryInMs: pauseAfter(error, retry, failure) };
  }
}

async function recordFailure(
  { runtime, clock, writer }: StepParts,
  command: Command,
  { kind, path: op, retry }: StepWork,
  { error, attempt, retryInMs }: StepFailure,
): Promise<void> {
  if (attempt === undefined)
    return writer.post(command, { kind, op, error: toStored(error, undefined, runtime.errors) });
  const hasGivenUp = retryInMs === undefined && retry !== false && !isFinal(error);
  const stored = toStored(error, hasGivenUp ? attempt : undefined, runtime.errors);
  const reason = wordsOf(stored);
  const failed = { step: op, attempt, reason, retryInMs };
  runtime.onFailedAttempt?.(error, failed);
  if (retryInMs === undefined) {
    runtime.log.warn("step failed", { step: op, attempt, reason });
    return writer.post(command, { kind, op, error: stored });
  }
  runtime.log.warn("attempt failed", { step: op, attempt, reason, retry_in_ms: retryInMs });
  const now = clock.now();
  const entry = { kind: "retry" as const, op, attempt, since: failingSince(command, now), error: stored };
  return writer.post(command, entry, { due: Math.ceil(now + retryInMs) });
}

/** When the first attempt at a step failed, if another fails now. */
const failingSince = ({ attempts, failingSince }: Command, now: number): number =>
  attempts === 0 ? now : failingSince;

/** One attempt at a step, or one check of an `until`: calls `fn` with the features around it, outside of windows, where calls of the context are refused. */
export async function attempt(
  parts: StepParts,
  command: Command,
  fn: StepFunction,
  options: StepOptions = {},
): Promise<StepResult> {
  const { runtime, lease, clock, writer, signal, doubts } = parts;
  const abort = new AbortController();
  command.abort = abort;
  if (signal.aborted) abort.abort(signal.reason);
  const subject: AttemptRun = {
    kind: command.kind as Attempt["kind"],
    path: command.path,
    fn,
    options,
    step: stepOf(parts, command, abort.signal),
    job: runtime,
    lease,
    clock,
    timeoutMs: options.timeout,
    outsideBytes: 0,
    begin() {
      throwIfOver(command, abort);
      return writer.post(command, { kind: "begin", of: "step", op: command.path, at: clock.now() });
    },
    verify: (objection) => doubts.add(command.path, objection),
    async run() {
      // What a feature has waited for may have taken long.
      throwIfOver(command, abort);
      if (subject.timeoutMs === undefined) return fn(subject.step);
      return inTime(clock, abort, subject.timeoutMs, async () => fn(subject.step));
    },
  };
  try {
    const value = await parts.layers.attempt(subject);
    return { value, ...(subject.outsideBytes > 0 && { outsideBytes: subject.outsideBytes }) };
  } finally {
    // The signal of an attempt that has ended must not fire at the end of the execution.
    delete command.abort;
  }
}

/** Whether a failed attempt was cut off by the deadline, so that its outcome is unknown. */
export const isCutOff = ({ pass }: Pick<StepParts, "pass">): boolean => pass.isLate && !pass.isInterrupted;

/** @throws the reason, if the attempt has been aborted, or the function does not use its outcome any more */
function throwIfOver({ isOver }: Command, abort: AbortController): void {
  if (isOver) abort.abort();
  abort.signal.throwIfAborted();
}

/** What the function is handed, apart from what features add. */
function stepOf({ runtime, lease, pass, report }: StepParts, command: Command, signal: AbortSignal): Step {
  const { owner = "", env, log, metrics } = runtime;
  const step = {
    attempt: command.attempts + 1,
    get idempotencyKey() {
      return bytesToHex(sha256(utf8ToBytes(`${lease.run}\n${command.path}`)).subarray(0, 16));
    },
    signal,
    deadline: pass.waitsUntil,
    owner,
    env,
    log,
    metrics,
    progress: (done: number, total?: number, message?: string) => report.progress(done, total, message),
  } as Step;
  leaseOfStep.set(step, lease);
  return step;
}

async function inTime<T>(clock: Clock, abort: AbortController, ms: number, run: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => {
    const error = new TimeoutError(`no outcome within ${durationInWords(ms)}`);
    late.reject(error);
    abort.abort(error);
  });
  try {
    return await Promise.race([run(), late.promise]);
  } finally {
    cancel();
  }
}
