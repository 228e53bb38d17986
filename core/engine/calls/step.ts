import { type CheckedStepOptions, NondeterminismError, type Step, type StepOptions } from "../../author/context.ts";
import { outside } from "../guard/guard.ts";
import type { Command } from "../replay/commands/commands.ts";
import { checkFunction, type Scope } from "./scope.ts";

export function step<T>(
  scope: Scope,
  name: string,
  fn: (step: Step) => T | Promise<T>,
  options: StepOptions & Partial<CheckedStepOptions<T>> = {},
  maxNameLength?: number,
): Promise<T> {
  const prepare = (command: Command) => {
    checkFunction(command, fn);
    const { onStep } = scope.parts.runtime;
    const problem = onStep && outside(() => onStep(command.path, fn));
    if (problem !== undefined) throw new NondeterminismError(problem);
    command.work = { do: "attempt", fn, options };
    if (options.schema) command.schema = options.schema;
  };
  return scope.issue("step", name, prepare, { ...(maxNameLength !== undefined && { maxNameLength }) });
}
