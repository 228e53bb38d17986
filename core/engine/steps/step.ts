/** The work of a step: its attempts, up to the outcome or to the pause before the next one. */
import { MINUTE, type Retry, RuleBroken } from "../../definitions/context.ts";
import type { Command, Work } from "../replay/command.ts";
import { LeaseLost } from "../runtime.ts";
import { isFinal, storable, toStored } from "../values.ts";
import { attempt, type StepHost } from "./attempt.ts";
import { pauseAfter } from "./retry.ts";

type Attempts = Extract<Work, { do: "attempt" }>;

export async function performStep(host: StepHost, command: Command, work: Attempts): Promise<void> {
  const { path } = command;
  const kind = command.kind as "step" | "start";
  const { retry, atMostOnce = false } = work.options;
  const earlier = host.runtime.memo?.get(path);
  if (earlier?.event.kind === kind && !earlier.event.error) {
    await host.record(command, { kind, op: path, value: earlier.value }, "resolved");
    return;
  }
  if (atMostOnce) {
    if (command.begun) {
      const message = `it was begun at ${new Date(command.begun.at).toISOString()}, and whether it had its effect is unknown: it is not repeated`;
      await host.record(command, { kind, op: path, error: { name: "NonRetryableError", message } }, "resolved");
      return;
    }
    await host.record(command, { kind: "begin", of: "step", op: path, at: host.clock.now() }, "resolved");
  }
  try {
    const value = storable(await attemptWithin(host, command, work), `step "${path}"`);
    await host.record(command, { kind, op: path, ...(value !== undefined && { value }) }, "resolved");
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (command.isOver || host.signal.aborted) return;
    if (error instanceof RuleBroken) host.breaks(error.message);
    else await failed(host, command, kind, error, atMostOnce ? false : retry);
  }
}

/** Makes an attempt when the step's limit allows it. */
async function attemptWithin(host: StepHost, command: Command, { fn, options }: Attempts): Promise<unknown> {
  const { limit, timeout } = options;
  if (!limit) return attempt(host, command, fn, timeout);
  const time = timeout ?? MINUTE;
  const done = await host.runtime.limit?.({ ...limit, time }, host.signal);
  try {
    return await attempt(host, command, fn, time);
  } finally {
    done?.();
  }
}

async function failed(
  { runtime, clock, record }: StepHost,
  command: Command,
  kind: "step" | "start",
  error: unknown,
  retry: Retry | false | undefined,
): Promise<void> {
  const attempts = command.attempts + 1;
  const now = clock.now();
  const since = command.attempts === 0 ? now : command.failingSince;
  const { deadline, log } = runtime;
  const pause = pauseAfter(error, retry, { attempts, since, now, deadline });
  const gaveUp = pause === undefined && retry !== false && !isFinal(error);
  const stored = toStored(error, gaveUp ? attempts : undefined);
  const op = command.path;
  const fields = { step: op, attempt: attempts, reason: stored.message };
  runtime.onFailure?.(error, { ...fields, ...(pause !== undefined && { retry_in_ms: pause }) });
  if (pause === undefined) {
    log.warn("step failed", fields);
    await record(command, { kind, op, error: stored }, "resolved");
  } else {
    log.warn("attempt failed", { ...fields, retry_in_ms: pause });
    const due = Math.ceil(now + pause);
    await record(command, { kind: "retry", op, attempt: attempts, since, error: stored }, { due });
  }
}
