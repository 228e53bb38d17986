import type { NondeterminismError, Spent } from "../../author/context.ts";
import { Outcome } from "../replay/commands/commands.ts";
import { Spending } from "../replay/commands/spending.ts";
import { ask } from "./ask.ts";
import type { Scope } from "./scope.ts";

/** It is no command, as its outcome follows from the calls alone. */
export function spend(scope: Scope, amount: number, { of }: { of: string }): Promise<Spent> {
  const { spending = new Spending(), pass, commands } = scope.parts;
  const spent = new Outcome<Spent>((resolve, reject) => {
    if (scope.isAbandoned) return;
    if (scope.interruption) return reject(scope.interruption);
    try {
      scope.checkCall("spend", of);
      spending.add(of, amount);
    } catch (error) {
      return reject(pass.ruleBroken((error as NondeterminismError).message));
    }
    // The question is the function's own, so that it outlives an abandoned branch.
    spending.within(of, (limit, before) => mayGrow(scope.root, of, limit, before)).then(resolve, reject);
  });
  spent.catch((error) => commands.failedSpends.push({ kind: "spend", path: of, failure: { error }, outcome: spent }));
  spent.isAwaited = false;
  return spent;
}

async function mayGrow(scope: Scope, of: string, limit: number, { spent, limit: before }: Spent): Promise<boolean> {
  const { jobName } = scope.parts.runtime;
  const message = `${jobName} has spent ${spent} ${of}, and may spend ${before}. May it spend up to ${limit}?`;
  const requestedSchema = { type: "object" as const, properties: {} };
  return (await ask(scope, `${of} up to ${limit}`, { message, requestedSchema })).action === "accept";
}
