import * as z from "zod";
import { hashed, type Job } from "../core/author/job.ts";
import type { DurablePromise } from "../core/jobs/durable-promise.ts";
import { startJob } from "../core/jobs/start.ts";
import { escapeId, splitGeneration, unescapeId } from "../core/resonate/ids.ts";
import { canonical } from "../core/resonate/json.ts";
import { waitFor } from "../core/tools/job-tool.ts";
import { presentJob } from "../core/tools/present.ts";
import { type CallContext, type ServerBehind, type Tool, ToolError } from "../core/tools/tool.ts";
import { callAtOnce, cancelCall, type Told, type Worker } from "./at-once.ts";
import { levelFor, tellLogs } from "./behind/logs.ts";
import type { CallArgs } from "./call-job.ts";
import { JOB_NAME, listingOf, takesJobName } from "./listing.ts";
import type { Policy } from "./policy.ts";
import { type ListedTool, nameHere } from "./snapshot.ts";
import type { WrapOptions } from "./wrap-options.ts";

/** The longest name of a call, in characters. Longer idempotency keys are hashed. */
const MAX_KEY = 100;

export function wrappedTool(
  tool: ListedTool,
  policy: Policy,
  options: WrapOptions,
  job: Job<CallArgs>,
  behind: ServerBehind,
  worker?: Worker,
): Tool {
  const { prefix, after } = options;
  const named = !policy.shared && takesJobName(tool);
  /** The arguments of a call's job; `isNew`: no other call can have its name. `advise` tells the client how to repeat the call. */
  const prepared = async (given: unknown, context: CallContext) => {
    const {
      key,
      args,
      isNew = false,
    } = await identified(tool, policy, job, given as Record<string, unknown>, named, context);
    const wanted: CallArgs = { tool: tool.name, arguments: args, key, once: policy.once };
    if (policy.freshFor !== undefined) wanted.fresh_for = policy.freshFor;
    // A result that answers several calls must depend on their arguments alone.
    else {
      const log = levelFor(context);
      if (context.meta) wanted.meta = context.meta;
      if (log !== undefined) wanted.log = log;
    }
    const name = await job.name(wanted);
    const how = named
      ? `To have it sent once in all, repeat it with ${JOB_NAME}: "${key}".`
      : `A repeat would send it again: look first, with probe_status(job_names: ["${name}"]).`;
    const advise = () => {
      if (policy.once && isNew) context.advise?.(`The call may have been sent to ${options.name}. ${how}`);
    };
    advise();
    return { wanted, isNew, name, advise };
  };
  const launch = async (wanted: CallArgs, context: CallContext): Promise<DurablePromise> => {
    const { key, arguments: args } = wanted;
    const promise = await startJob(context.store, job, wanted, context.now);
    const { tool: called, arguments: first } = promise.args as CallArgs;
    // Tool `a.b` with the call name `k` and tool `a` with `b.k` have the same job name.
    if (called !== tool.name) {
      throw new ToolError(
        `Nothing was done: the name ${JSON.stringify(key)} belongs to a call of ${called}. Choose another ${JOB_NAME}.`,
      );
    }
    if (canonical(first) !== canonical(args)) {
      throw new ToolError(
        `Nothing was done: the call named ${JSON.stringify(key)} was made before, with other arguments (${preview(first)}). Choose another ${JOB_NAME}, or repeat the call unchanged.`,
      );
    }
    return promise;
  };
  /**
   * Has the worker make a call whose name no other call can have. Undefined if it was not sent, or if the deployment needs its job:
   * for refusals, quotas, storage limits or labels.
   */
  const toldAtOnce = async (
    wanted: CallArgs,
    name: string,
    { store, advise }: CallContext,
  ): Promise<Told | undefined> => {
    if (worker === undefined || store.needsJobs) return undefined;
    const told = await callAtOnce(worker, store.logName(name), wanted);
    // Until the call has a job, a repeat by name would send it again.
    if (told && policy.once)
      advise?.(`The call was sent to ${options.name}, and its outcome is lost: look there before you repeat it.`);
    return told;
  };
  /** Waits for a call's job. If the client cancels the call, the job is cancelled too, unless another call may have its name. */
  const call = async (given: unknown, context: CallContext) => {
    const { wanted, isNew, name, advise } = await prepared(given, context);
    const told = isNew ? await toldAtOnce(wanted, name, context) : undefined;
    if (told?.answer) {
      const { done, total, message } = told.progress ?? {};
      if (done !== undefined) context.reportProgress?.(done, total, message);
      tellLogs(told.answer, context);
      const settled = { name, job: job as Job, state: "resolved", value: told.answer } as DurablePromise;
      return presentJob(settled, await context.pageOf?.(name));
    }
    const launched = launch({ ...wanted, ...(told?.sent && { sent: told.sent }) }, context).then((promise) => {
      advise();
      return promise;
    });
    try {
      return await waitFor(launched, { ...context, patience: after ?? context.patience }, passing(context));
    } finally {
      const promise = await launched;
      if (isNew && promise.state === "pending" && context.isCancelled?.()) {
        await context.store.cancel(promise.name);
        if (worker && told?.sent) await cancelCall(worker, context.store.logName(name));
      }
    }
  };
  return {
    name: nameHere(tool.name, prefix),
    // The server validates the arguments.
    input: { schema: z.record(z.string(), z.unknown()), json: { type: "object" }, isOpen: true },
    listing: listingOf(tool, options, named),
    job: job as Job,
    waits: true,
    start: async (args, context) => launch((await prepared(args, context)).wanted, context),
    behind,
    call,
    resume: (promise, context) => waitFor(Promise.resolve(promise), context, passing(context)),
  };
}

/** How to wait for a call's job: the server's log messages are passed on to the client. */
const passing = (context: CallContext) => ({ passes: true, onResult: (result: unknown) => tellLogs(result, context) });

/** The key of a call, and its arguments for the server; `isNew`: a repeat of the call gets another key. */
async function identified(
  tool: ListedTool,
  { freshFor, shared }: Policy,
  job: Job<CallArgs>,
  given: Record<string, unknown>,
  named: boolean,
  { idempotencyKey }: CallContext,
): Promise<{ key: string; args: Record<string, unknown>; isNew?: boolean }> {
  const { [JOB_NAME]: name, ...rest } = given;
  const args = named ? rest : given;
  if (named && name !== undefined && name !== null && name !== "") {
    const key = typeof name === "string" ? keyIn(name, job.prefix + escapeId(`${tool.name}.`)) : undefined;
    if (key === undefined || key.length > MAX_KEY) {
      throw new ToolError(`Nothing was done: ${JOB_NAME} must be a text of up to ${MAX_KEY} characters.`);
    }
    return { key, args };
  }
  if (idempotencyKey !== undefined && !shared) {
    return { key: idempotencyKey.length > MAX_KEY ? await hashed(idempotencyKey) : idempotencyKey, args };
  }
  if (freshFor !== undefined) return { key: await hashed(canonical(args)), args };
  return { key: crypto.randomUUID(), args, isNew: true };
}

/** The key that a caller gives: the key itself, or the full job name from an earlier answer. */
const keyIn = (name: string, beginning: string): string =>
  name.startsWith(beginning) ? unescapeId(splitGeneration(name.slice(beginning.length)).base) : name;

function preview(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
