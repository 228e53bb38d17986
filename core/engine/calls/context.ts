/** The context as the author sees it. Each of its calls is made in a file of its own. */
import type { Context } from "../../author/context.ts";
import { all, allSettled } from "./all.ts";
import { ask } from "./ask.ts";
import { awaitJob } from "./await.ts";
import { callback } from "./callback.ts";
import { cleanup, onUndo } from "./cleanup.ts";
import { continueAs } from "./continue-as.ts";
import { emit, event } from "./emit.ts";
import { progress } from "./progress.ts";
import { any, race, timeout } from "./race.ts";
import type { Scope } from "./scope.ts";
import { sleep } from "./sleep.ts";
import { spend } from "./spend.ts";
import { start } from "./start.ts";
import { step } from "./step.ts";
import { until } from "./until.ts";
import { now, random, uuid } from "./values.ts";

/** The calls by their names. Each takes a scope, and then what its author passes. */
const CALLS = Object.entries({
  step,
  start,
  sleep,
  ask,
  callback,
  await: awaitJob,
  until,
  all,
  allSettled,
  race,
  any,
  timeout,
  cleanup,
  onUndo,
  spend,
  progress,
  emit,
  event,
  now,
  random,
  uuid,
  continueAs,
} satisfies { readonly [Name in keyof Context]?: CallOf<Context[Name]> } & { continueAs: unknown });

type CallOf<Method> = Method extends (...args: infer Args) => infer Result
  ? (scope: Scope, ...args: Args) => Result
  : never;

/** The context of a scope. Its calls may be taken out of it and called alone: `const { step } = ctx`. */
export function contextOf(scope: Scope): Context {
  const { runtime, signal } = scope.parts;
  const context = {
    jobName: runtime.jobName,
    deadline: runtime.cancelled?.deadline ?? runtime.deadline,
    signal,
    env: runtime.env,
    get log() {
      return scope.log;
    },
    get metrics() {
      return scope.metrics;
    },
  };
  for (const [name, call] of CALLS) Reflect.set(context, name, (call as BoundCall).bind(undefined, scope));
  return context as typeof context & Context;
}

type BoundCall = (scope: Scope, ...args: unknown[]) => unknown;
