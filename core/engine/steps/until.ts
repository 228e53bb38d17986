/**
 * The looks of an `until`. They are due at whole multiples of `every` after the first, and the pause before each is a
 * promise whose id holds its number: looks leave no records, so that each costs the same however many came before.
 */
import { RuleBroken, SECOND } from "../../definitions/context.ts";
import { decodeValue } from "../../store/codec.ts";
import type { Command, StepFunction, Work } from "../replay/command.ts";
import { LeaseLost } from "../runtime.ts";
import { isFinal, storable, toStored } from "../values.ts";
import { attempt, type StepHost, words } from "./attempt.ts";

const kind = "until";

/** Makes the looks that are due, up to an outcome or to the pause before the next one. */
export async function performLooks(
  host: StepHost,
  command: Command,
  { check, every, for: patience }: Extract<Work, { do: "look" }>,
): Promise<void> {
  const { lease, clock, runtime, record } = host;
  const op = command.path;
  if (!command.begun) await record(command, { kind: "begin", of: kind, op, at: clock.now() }, "resolved");
  const { n, at } = command.begun ?? { n: 0, at: 0 };
  const end = Math.min(at + (patience ?? Number.POSITIVE_INFINITY), runtime.deadline - SECOND);
  for (let k = Math.floor((clock.now() - at) / every) + 1; ; k++) {
    const due = Math.ceil(at + k * every);
    const isLast = due > end;
    const id = `${lease.id}:w${n}.${k}`;
    // The execution that creates the next pause makes the look before it. One that was woken by something else does not.
    const by = crypto.randomUUID();
    const pause = isLast ? undefined : await lease.create(id, { by }, { due });
    const isOurs = !pause || (decodeValue(pause.param) as { by?: unknown } | undefined)?.by === by;
    if (!isOurs && pause.state !== "pending") continue;
    if (isOurs && (await look(host, command, check))) return;
    if (isLast) {
      const why = command.lastError === undefined ? "" : `: ${command.lastError}`;
      const message = `"${op}" did not come about within ${words(Math.max(end - at, 0))}${why}`;
      await record(command, { kind, op, error: { name: "NonRetryableError", message } }, "resolved");
      return;
    }
    command.pause = { id, due };
    command.isRunning = false;
    return;
  }
}

/** Resolves with whether it was the last look: it found something, or no look ever will. */
async function look(host: StepHost, command: Command, check: StepFunction): Promise<boolean> {
  const op = command.path;
  try {
    const value = storable(await attempt(host, command, check, undefined), `"${op}"`);
    command.attempts += 1;
    delete command.lastError;
    if (!value) return false;
    await host.record(command, { kind, op, value }, "resolved");
    return true;
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (command.isOver || host.signal.aborted) return true;
    if (error instanceof RuleBroken) {
      host.breaks(error.message);
      return true;
    }
    command.attempts += 1;
    const stored = toStored(error);
    if (isFinal(error)) {
      await host.record(command, { kind, op, error: stored }, "resolved");
      return true;
    }
    command.lastError = stored.message;
    host.runtime.log.warn("look failed", { step: op, reason: stored.message });
    return false;
  }
}
