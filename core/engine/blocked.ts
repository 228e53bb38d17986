/** Code that does not fit the records of a job, in words. */

import type { Command } from "./command.ts";
import { WAITS } from "./determinism.ts";
import type { JournalEntry } from "./journal.ts";

/** The job is left as it is until code that fits is back. */
export class Blocked extends Error {}

/** Not this was called where a record says so, but `instead`, or nothing where the function `hasEnded` or waits. */
export function mismatch(event: JournalEntry, instead: readonly Command[], hasEnded: boolean): Blocked {
  const kind = event.kind === "begin" ? event.of : event.kind === "retry" ? "step" : event.kind;
  const came = instead
    .slice(0, 3)
    .map((each) => (each.kind === kind ? `"${each.path}"` : `${each.kind} "${each.path}"`));
  const nothing = hasEnded ? "the function ended" : `nothing came. The code has changed, or it ${WAITS}`;
  return new Blocked(
    `${kind} "${event.op}" was recorded here, ${came.length > 0 ? `${came.join(", ")} came` : nothing}`,
  );
}

export function otherWinner({ path, winner }: Command, recorded: string): Blocked {
  const now = winner ? `"${winner.key}" ended first` : "no branch has ended";
  return new Blocked(`race "${path}" was recorded here as won by "${recorded}", ${now}`);
}
