/** The work of commands: a record, a check, or an attempt at a step, up to an outcome or to the pause before the next. */
import { NondeterminismError } from "../../author/context.ts";
import { isFinal, storable, toStored } from "../../author/values.ts";
import { LeaseLost } from "../job-lease.ts";
import type { Command, StepFunction, Work } from "../replay/commands/command.ts";
import type { StepFailure, StepOutcome, StepWork } from "../step-feature.ts";
import { attempt, isCutOff, type StepParts } from "./attempt.ts";
import { pauseAfter } from "./retry.ts";
import { performChecks } from "./until.ts";

export function perform(parts: StepParts, command: Command, work: Work): Promise<void> {
  if (work.do === "record") return parts.writer.post(command, work.entry, work.when);
  return work.do === "check" ? performChecks(parts, command, work) : performStep(parts, command, work);
}

async function performStep(
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
    if (error instanceof NondeterminismError) {
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
  const failed = { step: op, attempt, reason: stored.message, retryInMs };
  runtime.onFailedAttempt?.(error, failed);
  if (retryInMs === undefined) {
    runtime.log.warn("step failed", { step: op, attempt, reason: stored.message });
    return writer.post(command, { kind, op, error: stored });
  }
  runtime.log.warn("attempt failed", { step: op, attempt, reason: stored.message, retry_in_ms: retryInMs });
  const now = clock.now();
  const entry = { kind: "retry" as const, op, attempt, since: failingSince(command, now), error: stored };
  return writer.post(command, entry, { due: Math.ceil(now + retryInMs) });
}

/** When the first attempt at a step failed, if another fails now. */
const failingSince = ({ attempts, failingSince }: Command, now: number): number =>
  attempts === 0 ? now : failingSince;
