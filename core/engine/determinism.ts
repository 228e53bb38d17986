/** The words with which code that breaks a rule of `context.ts` is refused. */
import type { Command } from "./command.ts";
import { difference, returned } from "./values.ts";

const TO_DO = "Outside of steps only what ctx returns is awaited: put the rest into a step";

/** Rule 2, where something was called or has ended. */
export const AWAITED = `after an await of something that is not ctx's. ${TO_DO}`;

/** Rule 2, where nothing is left to come. */
export const WAITS = `waits for something that is not ctx's, or for a branch that was given up. ${TO_DO}`;

/** Rules 1 and 3, where a function has shown another course when it was run again. */
export const DIFFERS =
  "What may differ the second time (a request, a random number, the time of day) is in a step, and a step changes nothing outside of itself: it returns it";

/** How a function has ended. */
export type End = { value: unknown } | { error: unknown } | undefined;

/** How two runs of a function have ended differently, in words. What an error says may well be what o'clock it is. */
export function endsDiffer(first: End, second: End): string | undefined {
  if (!first || !second) return first === second ? undefined : "did not come to its end";
  if ("error" in first || "error" in second) {
    return "error" in first && "error" in second ? undefined : "threw in one run alone";
  }
  const place = difference(first.value, second.value);
  return place === undefined ? undefined : `returned something else${place && ` at ${place}`}`;
}

const UNAWAITED =
  "Each call of ctx is awaited before the function returns; forEach awaits nothing: write for … of, or ctx.all(items, async (ctx, item) => …)";

/** Rule 2, where a function's result went on growing after it was returned, and was stored: what came then would be lost. */
export function changedSince(value: unknown): string | undefined {
  const whole = typeof value === "object" && value !== null ? returned.get(value) : undefined;
  const place = whole && difference(value, whole);
  if (place === undefined) return undefined;
  return `what the function returned changed after it had ended${place && `, at ${place}`}. ${UNAWAITED}`;
}

/** Where a job waits for nothing but the ends of sleeps after its deadline, and so can only time out. */
export function tooLate(waiting: readonly Command[], deadline: number): string | undefined {
  const calls = waiting.filter(({ kind }) => kind !== "all" && kind !== "race");
  const [sleep] = calls;
  if (!sleep || !calls.every(({ kind, awaited: external }) => kind === "sleep" && (external?.due ?? 0) > deadline))
    return undefined;
  return `sleep "${sleep.path}" would end after the job's deadline, ${new Date(deadline).toISOString()}: give the definition a longer one`;
}
