import {
  type ChildJob,
  DAY,
  NondeterminismError,
  SECOND,
  type Startable,
  type ChildJobOptions,
  type StepOptions,
} from "../../author/context.ts";
import type { Command } from "../replay/commands/commands.ts";
import { awaitJob } from "./await.ts";
import { MAX_JOB_NAME_LENGTH, type Scope } from "./scope.ts";

/** Starts, cancellations and outputs are mere requests to the Resonate server, retried for as long as the job may run. */
export const REQUEST_OPTIONS: StepOptions = { retry: { maxDuration: 366 * DAY, maxInterval: 5 * SECOND } };

export function start<Args, Result>(
  scope: Scope,
  definition: Startable<Args, Result> | { readonly job: Startable<Args, Result> },
  args: Args,
  options: ChildJobOptions = {},
): Promise<ChildJob<Result>> {
  const job = definition && "job" in definition ? definition.job : definition;
  const prepare = (command: Command) => {
    if (typeof job?.args?.parse !== "function") {
      throw new NondeterminismError(
        "ctx.start takes a definition, as defineDurableTool and defineJob make it, and its arguments",
      );
    }
    const { whenParentEnds = job.shared ? "leave" : "cancel" } = options;
    if (whenParentEnds !== "cancel" && whenParentEnds !== "leave")
      throw new NondeterminismError(`ctx.start: whenParentEnds is ${whenParentEnds}; it is "cancel" or "leave"`);
    const begin = (child: string) => beginChild(scope, command, child);
    // What a clean-up starts is for the time after the job's end.
    const policy = scope.isShielded ? "leave" : whenParentEnds;
    const fn = () => scope.parts.runtime.start(job, args, { ...options, whenParentEnds: policy, begin });
    command.work = { do: "attempt", fn, options: REQUEST_OPTIONS };
  };
  return scope.issue("start", options.name ?? `start ${job?.kind}`, prepare, {
    map: (child: string) => childOf<Result>(scope, child),
  });
}

async function beginChild({ parts }: Scope, command: Command, child: string): Promise<void> {
  const { writer, clock } = parts;
  const { path: op } = command;
  if (!command.beginning) await writer.post(command, { kind: "begin", of: "start", op, at: clock.now(), child });
  // Without a record, nobody would end the job.
  if (command.isOver) throw new DOMException("the start was given up", "AbortError");
}

/**
 * Ends the jobs that were started in a context which is given up. Recorded as steps, which the end of the function waits for.
 * `within`: the path of that context; `scope`: the one in which they are recorded.
 */
export function endChildren(scope: Scope, within: string): Promise<unknown> {
  const { commands, runtime } = scope.parts;
  const ends = commands.giveUp(within).map((child) => {
    const prepare = (command: Command) => {
      command.work = { do: "attempt", fn: () => runtime.endChild(child), options: REQUEST_OPTIONS };
    };
    return scope.issue("step", `end ${child}`, prepare, { maxNameLength: MAX_JOB_NAME_LENGTH }).catch(() => {});
  });
  return Promise.all(ends);
}

function childOf<Result>(scope: Scope, name: string): ChildJob<Result> {
  return {
    name,
    result: () => awaitJob<Result>(scope, name),
    cancel: () => cancel(scope, name),
  };
}

async function cancel(scope: Scope, job: string): Promise<void> {
  const prepare = (command: Command) => {
    const fn = async () => {
      await scope.parts.runtime.cancel(job);
      return null;
    };
    command.work = { do: "attempt", fn, options: REQUEST_OPTIONS };
  };
  await scope.issue("step", `cancel ${job}`, prepare, { maxNameLength: MAX_JOB_NAME_LENGTH });
}
