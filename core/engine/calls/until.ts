import { NondeterminismError, type Step } from "../../author/context.ts";
import { checkFunction, type Scope } from "./scope.ts";

export function until<T>(
  scope: Scope,
  name: string,
  options: { every: number; for?: number },
  check: (step: Step) => T | Promise<T>,
): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  return scope.issue("until", name, (command) => {
    checkFunction(command, check);
    if (!(options.every >= 1)) {
      throw new NondeterminismError(
        `ctx.until("${name}"): every is ${options.every}; it takes milliseconds, 1 or more`,
      );
    }
    command.work = { ...options, do: "check", check };
  });
}
