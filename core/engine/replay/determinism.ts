/** The messages that refuse code which breaks a rule of `definitions/context.ts` or does not fit the journal. */

import type { ZodType } from "zod";
import { parsedAtOnce, problemsOf } from "../../author/implement.ts";
import { difference, returnedObjects, toStored } from "../../author/values.ts";
import type { JournalEntry } from "../journal.ts";
import type { Command } from "./commands/commands.ts";

const ADVICE_ON_AWAITS = "Outside of steps only what ctx returns is awaited: put the rest into a step";

/** Rule 2, for a call or an end after a foreign await. */
export const AFTER_FOREIGN_AWAIT = `after an await of something that is not ctx's. ${ADVICE_ON_AWAITS}`;

/** Rule 2, for a function that waits although no outcome is left that could move it on. */
export const WAITS_FOR_SOMETHING_ELSE = `waits for something that is not ctx's, or for a branch that was given up. ${ADVICE_ON_AWAITS}`;

/** Rules 1 and 3, for a function whose second pass differs from the first. */
export const ADVICE_ON_DIFFERENCES =
  "What may differ the second time (a request, a random number, the time of day) is in a step, a step changes nothing outside of itself but returns it, and nothing that a module keeps between runs (a cache, a counter) decides what is called";

/** The code does not fit the journal: the job is left as it is until code that fits is back. */
export class Blocked extends Error {}

/** A possible cause of a mismatch. Left out of the message when a second pass of the same code differs. */
export const CODE_CHANGED = "The code has changed, or ";

/** The error for a journal entry at which the function issued the commands `instead`, ended, or issued nothing. */
export function mismatch(entry: JournalEntry, instead: readonly Command[], end: FunctionEnd): Blocked {
  const kind = entry.kind === "begin" ? entry.of : entry.kind === "retry" ? "step" : entry.kind;
  const came = instead
    .slice(0, 3)
    .map((each) => (each.kind === kind ? `"${each.path}"` : `${each.kind} "${each.path}"`));
  const nothing = end ? endInWords(end) : `nothing came. ${CODE_CHANGED}it ${WAITS_FOR_SOMETHING_ELSE}`;
  return new Blocked(
    `${kind} "${entry.op}" was recorded here, ${came.length > 0 ? `${came.join(", ")} came` : nothing}`,
  );
}

/** What a step's schema makes of its value. @throws what `refuse` makes of the problems, if the value does not fit */
export function outputOf(schema: ZodType, value: unknown, refuse: (what: string) => Error): unknown {
  const words = "a value that its schema checks asynchronously, which the step itself can do";
  const { success, data, error } = parsedAtOnce(schema, value, () => refuse(words));
  if (success) return data;
  throw refuse(`a value that does not fit its schema: ${problemsOf(error)}`);
}

/** For a step whose value was recorded by other code. */
export const recordedOtherwise = (path: string) => (what: string) =>
  new Blocked(
    `step "${path}" was recorded with ${what}. Accept such a value, or raise the version and keep the earlier function`,
  );

function endInWords(end: NonNullable<FunctionEnd>): string {
  if (!("error" in end)) return "the function ended";
  const { message, at = "" } = toStored(end.error);
  return `the function threw: ${message}${at}`;
}

export function otherWinner(path: string, recorded: string, winner: string | undefined): Blocked {
  const now = winner === undefined ? "no branch has ended" : `"${winner}" ended first`;
  return new Blocked(`race "${path}" was recorded here as won by "${recorded}", ${now}`);
}

/** How a function has ended; undefined while it has not. */
export type FunctionEnd = { value: unknown } | { error: unknown } | { next: unknown } | undefined;

/** How the ends of two passes differ; undefined if they do not. Errors may differ: they may hold the time of day. */
export function endsDiffer(first: FunctionEnd, second: FunctionEnd): string | undefined {
  if (!first || !second) return first === second ? undefined : "did not come to its end";
  if ("value" in first && "value" in second) return somethingElse("returned", first.value, second.value);
  if ("next" in first && "next" in second) return somethingElse("continued with", first.next, second.next);
  if ("error" in first && "error" in second) return undefined;
  return `${"next" in first || "next" in second ? "continued" : "threw"} in only one run`;
}

function somethingElse(did: string, before: unknown, other: unknown): string | undefined {
  const path = difference(before, other);
  return path === undefined ? undefined : `${did} something else${path && ` at ${path}`}`;
}

/** For a function that went on after it had called `ctx.continueAs`. */
export const CONTINUATION_NOT_RETURNED =
  "the function returned something else after ctx.continueAs(…): write return ctx.continueAs(args), which ends it";

/** For a loop that waits for a time by `ctx.now` alone. */
export const ADVICE_ON_TIME_LOOPS =
  "was called 10,000 times without an await in between: it is the time of the last outcome of a call, and moves on with the next. Write await ctx.sleep(name, ms) in the loop";

/** For an endless loop in a test. */
export const ADVICE_ON_ENDLESS_LOOPS =
  "does its loop end? One that goes on for as long as the job lives ends each turn with return ctx.continueAs(args)";

/** Advice for a call that nothing awaits. */
export const ADVICE_ON_UNAWAITED_CALLS =
  "Each call of ctx is awaited before the function returns; forEach awaits nothing: write for … of, or ctx.all(items, async (ctx, item) => …)";

/** Rule 2, for a result that changed after the function had returned it: the change would be lost. */
export function changedSince(value: unknown): string | undefined {
  const original = typeof value === "object" && value !== null ? returnedObjects.get(value) : undefined;
  const path = original && difference(value, original);
  if (path === undefined) return undefined;
  return `what the function returned changed after it had ended${path && `, at ${path}`}. ${ADVICE_ON_UNAWAITED_CALLS}`;
}

/** Rule 2, for a failure that nothing awaits. */
export function unhandledFailure(reason: unknown, what = "what the function began"): string {
  return `${what} has failed, and nothing awaits it: ${toStored(reason).message}. ${ADVICE_ON_UNAWAITED_CALLS}`;
}

/** For a job that waits only for sleeps that end after its deadline, and so can only time out. */
export function tooLate(waiting: readonly Command[], deadline: number): string | undefined {
  const [sleep] = waiting;
  if (!sleep || !waiting.every(({ kind, awaitedPromise }) => kind === "sleep" && (awaitedPromise?.due ?? 0) > deadline))
    return undefined;
  return `sleep "${sleep.path}" would end after the job's deadline, ${new Date(deadline).toISOString()}: give the definition a longer one`;
}
