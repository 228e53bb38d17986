import { NondeterminismError } from "../../author/context.ts";
import { sourceLine } from "../../author/source-line.ts";
import { storable } from "../../author/values.ts";
import { outside } from "../guard/guard.ts";
import type { Scope } from "./scope.ts";

const LAST_CALL = "It is a function's last call: return ctx.continueAs(args)";

export function continueAs(scope: Scope, args: unknown): Promise<never> {
  const { pass, commands, runtime } = scope.parts;
  // No further run begins: the job was cancelled, is late, or fails.
  const end = scope.interruption ?? pass.unstorable;
  if (end) return Promise.reject(end);
  try {
    checkContinuation(scope);
    const stored = storable(args, "ctx.continueAs");
    pass.next = { args: runtime.nextArgs ? outside(() => runtime.nextArgs?.(stored)) : stored };
    // Only sleeps and awaits are left, which nothing waits for any more, and what ends jobs of branches.
    for (const command of [...commands.open]) if (!command.isShielded) commands.close(command);
  } catch (error) {
    pass.ruleBroken(error instanceof Error ? error.message : String(error));
  }
  return new Promise(() => {});
}

/** @throws {NondeterminismError} if the run cannot end here */
function checkContinuation(scope: Scope): void {
  const { pass, commands } = scope.parts;
  scope.checkCall("continueAs", "continueAs");
  const call = `ctx.continueAs${sourceLine()}`;
  if (scope.parent) throw new NondeterminismError(`${call}: an item or a branch cannot end the run. ${LAST_CALL}`);
  if (pass.next) throw new NondeterminismError(`${call} was called twice: the first ends the run. ${LAST_CALL}`);
  const beside = [...commands.open].find(({ kind, isShielded }) => kind !== "sleep" && kind !== "await" && !isShielded);
  if (beside)
    throw new NondeterminismError(
      `${call}: ${beside.kind} "${beside.path}" is still open. Await it before. ${LAST_CALL}`,
    );
}
