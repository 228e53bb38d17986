/** `ctx.cleanup` and `ctx.onUndo`: calls that a cancellation and the deadline do not end. */
import { type Context, NondeterminismError, type StepOptions } from "../../author/context.ts";
import { sourceLine } from "../../author/source-line.ts";
import { type Command, escapeName } from "../replay/commands/commands.ts";
import type { Undo } from "../replay/function-pass.ts";
import { checkFunction, MAX_JOB_NAME_LENGTH, type Scope } from "./scope.ts";
import { endChildren } from "./start.ts";
import { step } from "./step.ts";

export function cleanup<T>(
  scope: Scope,
  fn: (ctx: Context) => Promise<T>,
  { name = "cleanup" }: { name?: string } = {},
): Promise<T> {
  return scope.issue("cleanup", name, (command: Command) => {
    checkFunction(command, fn);
    const within = scope.shielded(`${command.path}/`, scope);
    const end = (settle: () => void) => {
      within.checkEnd(`ctx.cleanup("${name}")`);
      scope.settle(command, settle);
    };
    const run = async () => fn(scope.parts.contextOf(within));
    run().then(
      (value) => end(() => command.resolve(value)),
      (error) => end(() => command.reject(error)),
    );
  });
}

/** It is no command, as it only adds to a list of the pass. */
export function onUndo(scope: Scope, name: string, fn: Undo["fn"], options: StepOptions = {}): void {
  const { pass } = scope.parts;
  if (scope.isAbandoned) return;
  if (scope.interruption) throw scope.interruption;
  try {
    scope.checkCall("onUndo", name);
    if (typeof fn !== "function")
      throw new NondeterminismError(`ctx.onUndo("${name}")${sourceLine()} takes a function that undoes it`);
  } catch (error) {
    throw pass.ruleBroken((error as NondeterminismError).message);
  }
  pass.undos.push({ name: scope.path + escapeName(name), fn, options });
}

/**
 * Undoes what a function has done that ended without a result: the newest first, each in a step. What the function left running
 * is given up before. One that fails is logged, and named in `error`; the others are still made.
 */
export async function undoAll(root: Scope, error: unknown): Promise<void> {
  const { undos } = root.parts.pass;
  if (undos.length === 0) return;
  root.abandon();
  const scope = root.shielded("undo/");
  const failures: string[] = [];
  // They must not go on with what is undone.
  await endChildren(scope, "");
  for (let undo = undos.pop(); undo; undo = undos.pop()) {
    const { name, fn, options } = undo;
    await step(scope, name, fn, options, MAX_JOB_NAME_LENGTH).catch((failure) => {
      const reason = failure instanceof Error ? failure.message : String(failure);
      scope.log.error("undo failed", { undo: name, reason });
      failures.push(`"${name}" was not undone: ${reason}`);
    });
  }
  if (failures.length > 0 && error instanceof Error)
    Reflect.set(error, "message", [error.message, ...failures].join("; "));
}
