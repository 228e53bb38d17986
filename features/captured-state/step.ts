/**
 * Refuses steps, and checks of an `until`, that change a variable of their durable function: the change is lost when the function runs
 * again from its records. The variables that the step's function can see are compared before and after an attempt. One that has
 * changed is the step's doing if it has another value when the function has run again, which repeats all but the steps. What both
 * runs share (a pool, a module's cache) has the same value in both.
 */
import { type Attempt, type Objection, type Scope, type StepFeature, scopesOf } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { copyOf, pathOfDifference } from "./variables.ts";

declare module "../../core/engine/step-feature.ts" {
  interface JobOfStep {
    /** Whether the changes of its steps are not looked for. */
    ignoresCapturedState?: boolean;
  }
}

/** `executions`: how many executions of each version of a function are looked at. */
export function capturedState(executions: number): WorkerFeature {
  /** How often each version of a function was executed here. */
  const counts = new Map<string, number>();
  return {
    name: "captured-state",
    run({ runtime, kind, code: { version } }, next) {
      const key = `${kind} ${version}`;
      const count = counts.get(key) ?? 0;
      if (count < executions) counts.set(key, count + 1);
      else runtime.ignoresCapturedState = true;
      return next();
    },
    attempt: refuseCapturedState.attempt,
  };
}

export const refuseCapturedState = {
  async attempt(attempt, next) {
    if (attempt.job.ignoresCapturedState || !(attempt.kind === "step" || attempt.kind === "until")) return next();
    const before = variablesOf(attempt.fn);
    try {
      return await next();
    } finally {
      const after = scopesOf(attempt.fn);
      for (const variable of before) if (isChanged(variable, after)) attempt.verify(objectionTo(attempt, variable));
    }
  },
} satisfies StepFeature;

/** A variable that a function can see, with a copy of its value. */
interface Variable {
  name: string;
  /** The number of its scope, from the function outwards. */
  scope: number;
  value: unknown;
}

const variablesOf = (fn: object): Variable[] =>
  scopesOf(fn).flatMap((variables, scope) =>
    Object.entries(variables).map(([name, value]) => ({ name, scope, value: copyOf(value) })),
  );

const isChanged = ({ scope, name, value }: Variable, after: readonly Scope[]): boolean =>
  pathOfDifference(value, after[scope]?.[name], true) !== undefined;

/** Objects to a change that an attempt has made, unless the function has the changed value when it has run again. */
function objectionTo({ kind, path, fn }: Attempt, { scope, name, value: before }: Variable): Objection {
  return ({ fn: again, line, isComplete }) => {
    const variables = scopesOf(fn)[scope];
    const others = scopesOf(again)[scope];
    if (!variables || !others || !(name in others)) return undefined;
    // A run that has ended early need not have come to later changes of the function's own.
    const part = isComplete ? pathOfDifference(others[name], variables[name], false) : "";
    if (part === undefined || (!isComplete && pathOfDifference(before, others[name], false) !== undefined))
      return undefined;
    return `${kind} "${path}"${line} changes ${name}${part}, a variable of the function, which would be lost: ${ADVICE[kind === "until" ? kind : "step"]}`;
  };
}

const WHEN = "the function runs again from its start after each sleep, wait and crash, and its steps do not";

const ADVICE = {
  step: `${WHEN}. Return the value from the step, and change the variable with what await ctx.step(…) gives`,
  until: `${WHEN}. Let the check decide by what it looks at; a function that counts does so around ctx.sleep`,
};
