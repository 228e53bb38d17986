/** The work of commands: a record, a look, or an attempt of a step, up to an outcome or to the pause before the next. */
import { NondeterminismError, type Retry } from "../../author/context.ts";
import { isFinal, storable, toStored } from "../../author/values.ts";
import type { Command, Work } from "../replay/commands/command.ts";
import { LeaseLost } from "../runtime.ts";
import { attempt, isCutOff, type StepParts } from "./attempt.ts";
import { pauseAfter } from "./retry.ts";
import { performLooks } from "./until.ts";

type Attempts = Extract<Work, { do: "attempt" }>;

export function perform(parts: StepParts, command: Command, work: Work): Promise<void> {
  if (work.do === "record") return parts.writer.post(command, work.entry, work.when);
  return work.do === "look" ? performLooks(parts, command, work) : performStep(parts, command, work);
}

async function performStep(parts: StepParts, command: Command, { fn, options }: Attempts): Promise<void> {
  const { path } = command;
  const kind = command.kind as "step" | "start" | "emit";
  const { retry, atMostOnce = false } = options;
  const earlier = parts.runtime.memo?.get(path);
  if (earlier?.event.kind === kind && !earlier.event.error) {
    await parts.writer.post(command, { kind, op: path, value: earlier.value });
    return;
  }
  if (atMostOnce && command.begun) {
    const message = `it was begun at ${new Date(command.begun.at).toISOString()}, and whether it had its effect is unknown: it is not repeated`;
    await parts.writer.post(command, { kind, op: path, error: { name: "NonRetryableError", message } });
    return;
  }
  // A worker may wait for hours until the limits of the step allow the attempt, and has done nothing until then.
  const begins = () => parts.writer.post(command, { kind: "begin", of: "step", op: path, at: parts.clock.now() });
  let value: unknown;
  try {
    value = storable(await attempt(parts, command, fn, options, atMostOnce ? begins : undefined), `step "${path}"`);
    parts.lease.checkRoom?.(value);
  } catch (error) {
    if (command.isCut && parts.signal.aborted) parts.writer.leave(command);
    if (error instanceof LeaseLost) throw error;
    if (command.isOver || parts.signal.aborted) return;
    if (isCutOff(parts)) command.isRunning = false;
    else if (error instanceof NondeterminismError) parts.pass.breaks(error.message);
    else await failed(parts, command, kind, error, atMostOnce ? false : retry);
    return;
  }
  // Outside of the `try`: if the record can no longer be written, `post` rejects, and the outcome has been left already.
  const entry = { kind, op: path, value };
  if (command.isCut) parts.writer.leave(command, entry);
  else await parts.writer.post(command, entry);
}

async function failed(
  { runtime, clock, writer, pass }: StepParts,
  command: Command,
  kind: "step" | "start" | "emit",
  error: unknown,
  retry: Retry | false | undefined,
): Promise<void> {
  const attempts = command.attempts + 1;
  const now = clock.now();
  const since = command.attempts === 0 ? now : command.failingSince;
  const { log, errors } = runtime;
  const pause = pauseAfter(error, retry, { attempts, since, now, deadline: pass.waitsUntil });
  const gaveUp = pause === undefined && retry !== false && !isFinal(error);
  const stored = toStored(error, gaveUp ? attempts : undefined, errors);
  const op = command.path;
  const fields = { step: op, attempt: attempts, reason: stored.message };
  runtime.onFailure?.(error, { ...fields, ...(pause !== undefined && { retry_in_ms: pause }) });
  if (pause === undefined) {
    log.warn("step failed", fields);
    await writer.post(command, { kind, op, error: stored });
  } else {
    log.warn("attempt failed", { ...fields, retry_in_ms: pause });
    const due = Math.ceil(now + pause);
    await writer.post(command, { kind: "retry", op, attempt: attempts, since, error: stored }, { due });
  }
}
