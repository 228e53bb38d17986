/**
 * The checks of an `until`. They are due at whole multiples of `every` after the first, and the last one when `for` has passed.
 * The pause before each is a promise whose id holds the number of the check. Checks leave no records, so each costs the same
 * however many came before.
 */
import { NondeterminismError, SECOND } from "../../author/context.ts";
import { isFinal, storable, toStored, UnstorableValue, wordsOf } from "../../author/values.ts";
import { decodeValue } from "../../resonate/codec.ts";
import { lookId } from "../../resonate/ids.ts";
import { durationInWords } from "../clock.ts";
import { LeaseLost } from "../job-lease.ts";
import type { Command, StepFunction, Work } from "../replay/commands/commands.ts";
import { attempt, isCutOff, type StepParts } from "./step.ts";

const kind = "until";

/** Makes the check that is due, if there is one, up to an outcome or to the pause before the next check. */
export async function performChecks(
  parts: StepParts,
  command: Command,
  { check, every, for: maxDuration }: Extract<Work, { do: "check" }>,
): Promise<void> {
  const { lease, clock, pass, writer } = parts;
  const op = command.path;
  if (!command.beginning) await writer.post(command, { kind: "begin", of: kind, op, at: clock.now() });
  if (command.isOver) return;
  const { n, at } = command.beginning ?? { n: 0, at: 0 };
  const span = maxDuration ?? Number.POSITIVE_INFINITY;
  // Before the job's deadline the last check is a regular one, so that time is left for what the function does next.
  const end = Math.min(at + span, pass.waitsUntil - SECOND);
  for (let k = Math.floor((clock.now() - at) / every) + 1; ; k++) {
    const next = k * every > span ? at + span : at + k * every;
    // By the server's clock `for` may have passed a little earlier: then the pause that ends with it is the one before.
    const isLast = next > end || clock.now() >= end || (k - 1) * every >= span;
    const due = Math.ceil(next);
    const id = lookId(lease.run, n, k);
    // The execution that creates the next pause makes the check before it; an execution that finds the pause does not.
    const by = crypto.randomUUID();
    const pause = isLast ? undefined : await lease.create(id, { by }, { due });
    const isOurs = !pause || (decodeValue(pause.param) as { by?: unknown } | undefined)?.by === by;
    if (!isOurs && pause.state !== "pending") continue;
    if (isOurs && (await isOverAfter(parts, command, check))) return;
    if (isLast) {
      const why = command.lastError === undefined ? "" : `: ${command.lastError}`;
      const message = `"${op}" did not come about within ${durationInWords(Math.max(end - at, 0))}${why}`;
      await writer.post(command, { kind, op, error: { name: "NonRetryableError", message } });
      return;
    }
    command.pause = { id, due };
    command.isRunning = false;
    return;
  }
}

/** Makes one check; resolves with whether it was the last: it found something, or no check ever will. */
async function isOverAfter(parts: StepParts, command: Command, check: StepFunction): Promise<boolean> {
  const op = command.path;
  try {
    const { value: result, ...more } = await attempt(parts, command, check);
    const value = storable(result, `"${op}"`);
    command.attempts += 1;
    delete command.lastError;
    if (!value) return false;
    await parts.writer.post(command, { kind, op, value, ...more });
    return true;
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (command.isOver || parts.signal.aborted) return true;
    if (isCutOff(parts)) return false;
    if (error instanceof NondeterminismError && !(error instanceof UnstorableValue)) {
      parts.pass.ruleBroken(error.message);
      return true;
    }
    command.attempts += 1;
    const stored = toStored(error, undefined, parts.runtime.errors);
    if (isFinal(error)) {
      await parts.writer.post(command, { kind, op, error: stored });
      return true;
    }
    command.lastError = wordsOf(stored);
    parts.runtime.log.warn("check failed", { step: op, reason: command.lastError });
    return false;
  }
}
