import { NondeterminismError, type Step, type StepOptions } from "../../author/context.ts";
import { outside } from "../guard/guard.ts";
import { checkFunction, type Scope } from "./scope.ts";

export function step<T>(
  scope: Scope,
  name: string,
  fn: (step: Step) => T | Promise<T>,
  options: StepOptions = {},
): Promise<T> {
  return scope.issue("step", name, (command) => {
    checkFunction(command, fn);
    const { onStep } = scope.parts.runtime;
    const problem = onStep && outside(() => onStep(command.path, fn));
    if (problem !== undefined) throw new NondeterminismError(problem);
    command.work = { do: "attempt", fn, options };
  });
}
