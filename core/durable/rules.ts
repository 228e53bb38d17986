/** The words with which code that breaks a rule of `context.ts` is refused. */
import { difference } from "./values.ts";

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
