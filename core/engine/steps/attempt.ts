/** One attempt at a step, or one check of an `until`. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Step, StepOptions } from "../../author/context.ts";
import { type Clock, durationInWords } from "../clock.ts";
import { type Lease, leaseOfStep } from "../job-lease.ts";
import type { JournalWriter } from "../journal-writer.ts";
import type { Command, StepFunction } from "../replay/commands/command.ts";
import type { FunctionPass } from "../replay/function-pass.ts";
import type { StateReport } from "../replay/state-report.ts";
import type { Runtime } from "../runtime.ts";
import type { StepResult } from "../step-feature.ts";
import type { AttemptRun, StepLayers } from "../step-layers.ts";

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
}

/** Calls `fn` with the features around it: outside of windows, where calls of the context are refused. */
export async function attempt(
  parts: StepParts,
  command: Command,
  fn: StepFunction,
  options: StepOptions = {},
): Promise<StepResult> {
  const { runtime, lease, clock, writer, signal } = parts;
  const abort = new AbortController();
  command.abort = abort;
  if (signal.aborted) abort.abort(signal.reason);
  const subject: AttemptRun = {
    path: command.path,
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
    const error = new Error(`no outcome within ${durationInWords(ms)}`);
    late.reject(error);
    abort.abort(error);
  });
  try {
    return await Promise.race([run(), late.promise]);
  } finally {
    cancel();
  }
}
