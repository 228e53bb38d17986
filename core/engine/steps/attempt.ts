/** One attempt at a step, or one check of an `until`. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Step, StepOptions } from "../../author/context.ts";
import { type Clock, durationInWords } from "../clock.ts";
import { type Lease, noteLease } from "../job-lease.ts";
import type { JournalWriter } from "../journal-writer.ts";
import type { Command, StepFunction } from "../replay/commands/command.ts";
import type { FunctionPass } from "../replay/function-pass.ts";
import type { StateReport } from "../replay/state-report.ts";
import type { Runtime } from "../runtime.ts";
import type { Attempt, JobOfStep } from "../step-feature.ts";
import type { StepLayers } from "./layers.ts";

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
): Promise<unknown> {
  const abort = new AbortController();
  command.abort = abort;
  if (parts.signal.aborted) abort.abort(parts.signal.reason);
  try {
    return await parts.layers.attempt(new CommandAttempt(parts, command, fn, options, abort));
  } finally {
    // The signal of an attempt that has ended must not fire at the end of the execution.
    delete command.abort;
  }
}

/** Whether a failed attempt was cut off by the deadline, so that its outcome is unknown. */
export const isCutOff = ({ pass }: Pick<StepParts, "pass">): boolean => pass.isLate && !pass.isInterrupted;

class CommandAttempt implements Attempt {
  readonly path: string;
  readonly options: StepOptions;
  readonly step: Attempt["step"];
  readonly job: JobOfStep;
  readonly lease: Lease;
  readonly clock: Clock;
  timeoutMs: number | undefined;
  readonly #command: Command;
  readonly #fn: StepFunction;
  readonly #writer: JournalWriter;
  readonly #abort: AbortController;

  constructor(parts: StepParts, command: Command, fn: StepFunction, options: StepOptions, abort: AbortController) {
    this.path = command.path;
    this.options = options;
    this.step = stepOf(parts, command, abort.signal);
    this.job = parts.runtime;
    this.lease = parts.lease;
    this.clock = parts.clock;
    this.timeoutMs = options.timeout;
    this.#command = command;
    this.#fn = fn;
    this.#writer = parts.writer;
    this.#abort = abort;
  }

  async begin(): Promise<void> {
    this.#throwIfOver();
    const { path: op, clock } = this;
    await this.#writer.post(this.#command, { kind: "begin", of: "step", op, at: clock.now() });
  }

  async run(): Promise<unknown> {
    // What a feature has waited for may have taken long.
    this.#throwIfOver();
    if (this.timeoutMs === undefined) return this.#fn(this.step);
    const running = (async () => this.#fn(this.step))();
    return inTime(this.clock, this.#abort, running, this.timeoutMs);
  }

  /** @throws the reason, if the attempt has been aborted, or the function does not use its outcome any more */
  #throwIfOver(): void {
    if (this.#command.isOver) this.#abort.abort();
    this.#abort.signal.throwIfAborted();
  }
}

/** What the function is handed, apart from what features add. */
function stepOf({ runtime, lease, pass, report }: StepParts, command: Command, signal: AbortSignal): Step {
  const { owner = "", env, log, metrics } = runtime;
  const step = {
    attempt: command.attempts + 1,
    get idempotencyKey() {
      return keyOf(lease.run, command.path);
    },
    signal,
    deadline: pass.waitsUntil,
    owner,
    env,
    log,
    metrics,
    progress: (done: number, total?: number, message?: string) => report.progress(done, total, message),
  } as Step;
  noteLease(step, lease);
  return step;
}

function keyOf(run: string, path: string): string {
  return bytesToHex(sha256(utf8ToBytes(`${run}\n${path}`)).subarray(0, 16));
}

async function inTime<T>(clock: Clock, abort: AbortController, running: Promise<T>, timeoutMs: number): Promise<T> {
  const over = Promise.withResolvers<never>();
  const cancel = clock.after(timeoutMs, () => {
    const error = new Error(`no outcome within ${durationInWords(timeoutMs)}`);
    over.reject(error);
    abort.abort(error);
  });
  try {
    return await Promise.race([running, over.promise]);
  } finally {
    cancel();
  }
}
