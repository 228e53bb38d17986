import * as z from "zod";
import { hashed, type Job } from "../core/author/index.ts";
import { type DurablePromise, startJob } from "../core/jobs/index.ts";
import { canonical, escapeId, oneForm, splitGeneration, unescapeId } from "../core/resonate/index.ts";
import {
  type CallContext,
  presentJob,
  type Tool,
  ToolError,
  type UpstreamServer,
  waitFor,
} from "../core/tools/index.ts";
import { type CallState, callAtOnce, cancelCall, type WorkerEndpoint } from "./at-once.ts";
import { type CallArgs, nothingDone } from "./call-job.ts";
import { acceptsJobName, JOB_NAME, listingOf } from "./listing.ts";
import type { Policy } from "./policy.ts";
import { type ListedTool, prefixedName } from "./snapshot.ts";
import { levelFor, sendLogs } from "./upstream/logs.ts";
import type { WrapOptions } from "./wrap-options.ts";

/** The maximum length of a call's name. Longer idempotency keys are hashed. */
const MAX_KEY_CHARACTERS = 100;
/** The maximum length of a call's arguments in a message. */
const MAX_PREVIEW_CHARACTERS = 200;

interface WrappedToolParts {
  tool: ListedTool;
  policy: Policy;
  options: WrapOptions;
  /** The job of its calls. */
  job: Job<CallArgs>;
  upstream: UpstreamServer;
  /** The deployment's only worker, if the edge reaches it directly. */
  worker: WorkerEndpoint | undefined;
}

/** A tool of a wrapped server as the edge lists and calls it. */
export function wrappedTool({ upstream, ...parts }: WrappedToolParts): Tool {
  const { tool, policy, options, job } = parts;
  const hasJobName = !policy.shared && acceptsJobName(tool);
  const calls = new ToolCalls(parts, hasJobName);
  return {
    name: prefixedName(tool.name, options.prefix),
    // The server validates the arguments.
    input: { schema: z.record(z.string(), z.unknown()), json: { type: "object" }, isOpen: true, keepsIntegers: true },
    listing: listingOf(tool, options, hasJobName),
    job: job as Job,
    waits: true,
    start: async (args, context) => calls.start((await calls.prepare(args, context)).callArgs, context),
    upstream,
    call: (args, context) => calls.call(args, context),
    resume: (promise, context) => waitFor(Promise.resolve(promise), context, waitOptions(context)),
  };
}

/** A call before it is sent. */
interface PreparedCall {
  callArgs: CallArgs;
  /** The name of its job. */
  name: string;
  /** Whether no other call can have this name. */
  isNew: boolean;
  /** Sets what the client is advised if the call fails: how to repeat it. */
  advise(): void;
}

/** The calls of one tool. */
class ToolCalls {
  readonly #tool: ListedTool;
  readonly #policy: Policy;
  readonly #options: WrapOptions;
  readonly #job: Job<CallArgs>;
  readonly #worker: WorkerEndpoint | undefined;
  readonly #hasJobName: boolean;

  constructor({ tool, policy, options, job, worker }: Omit<WrappedToolParts, "upstream">, hasJobName: boolean) {
    this.#tool = tool;
    this.#policy = policy;
    this.#options = options;
    this.#job = job;
    this.#worker = worker;
    this.#hasJobName = hasJobName;
  }

  async prepare(toolArgs: unknown, context: CallContext): Promise<PreparedCall> {
    const { once, freshFor } = this.#policy;
    const { key, args, isNew = false } = await this.#identify(toolArgs as Record<string, unknown>, context);
    const callArgs: CallArgs = { tool: this.#tool.name, arguments: args, key, once };
    if (freshFor !== undefined) callArgs.fresh_for = freshFor;
    // A result that answers several calls must depend on their arguments alone.
    else {
      const log = levelFor(context);
      if (context.meta) callArgs.meta = context.meta;
      if (log !== undefined) callArgs.log = log;
    }
    const name = await this.#job.name(callArgs);
    const repeat = this.#hasJobName
      ? `To have it sent once in all, repeat it with ${JOB_NAME}: "${key}".`
      : `A repeat would send it again: check first, with probe_status(job_names: ["${name}"]).`;
    const advise = () => {
      if (once && isNew) context.advise?.(`The call may have been sent to ${this.#options.name}. ${repeat}`);
    };
    advise();
    return { callArgs, name, isNew, advise };
  }

  /** The key of a call, and its arguments for the server; `isNew`: a repeat of the call gets another key. */
  async #identify(
    toolArgs: Record<string, unknown>,
    { idempotencyKey }: CallContext,
  ): Promise<{ key: string; args: Record<string, unknown>; isNew?: boolean }> {
    const { freshFor, shared } = this.#policy;
    const { [JOB_NAME]: name, ...rest } = toolArgs;
    const args = this.#hasJobName ? rest : toolArgs;
    if (this.#hasJobName && name !== undefined && name !== null && name !== "") {
      const prefix = oneForm(this.#job.prefix + escapeId(`${this.#tool.name}.`));
      const key = typeof name === "string" ? keyIn(oneForm(name), prefix) : undefined;
      if (key === undefined || key.length > MAX_KEY_CHARACTERS) {
        throw new ToolError(nothingDone(`${JOB_NAME} must be a text of up to ${MAX_KEY_CHARACTERS} characters.`));
      }
      return { key, args };
    }
    if (idempotencyKey !== undefined && !shared) {
      const key = oneForm(idempotencyKey);
      return { key: key.length > MAX_KEY_CHARACTERS ? await hashed(key) : key, args };
    }
    if (freshFor !== undefined) return { key: await hashed(canonical(args)), args };
    return { key: crypto.randomUUID(), args, isNew: true };
  }

  /** Starts the job of a call, or finds it. */
  async start(callArgs: CallArgs, context: CallContext): Promise<DurablePromise> {
    const { key, arguments: args } = callArgs;
    const promise = await startJob(context.store, this.#job, callArgs, context.now);
    const { tool, arguments: firstArgs } = promise.args as CallArgs;
    // Tool `a.b` with the call name `k` and tool `a` with `b.k` have the same job name.
    if (tool !== this.#tool.name) {
      throw new ToolError(
        nothingDone(`the name ${JSON.stringify(key)} belongs to a call of ${tool}. Choose another ${JOB_NAME}.`),
      );
    }
    if (canonical(firstArgs) !== canonical(args)) {
      throw new ToolError(
        nothingDone(
          `the call named ${JSON.stringify(key)} was made before, with other arguments (${preview(firstArgs)}). Choose another ${JOB_NAME}, or repeat the call unchanged.`,
        ),
      );
    }
    return promise;
  }

  /** Waits for a call's job. If the client cancels the call, the job is cancelled too, unless another call may have its name. */
  async call(toolArgs: unknown, context: CallContext) {
    const { callArgs, isNew, name, advise } = await this.prepare(toolArgs, context);
    const { answer, progress, sendRecord } = (isNew && (await this.#callAtOnce(callArgs, name, context))) || {};
    if (answer) {
      if (progress) context.reportProgress?.(progress.done, progress.total, progress.message);
      sendLogs(answer, context);
      const promise = { name, job: this.#job as Job, state: "resolved", value: answer } as DurablePromise;
      return presentJob(promise, await context.pageOf?.(name));
    }
    const start = this.start({ ...callArgs, ...(sendRecord && { send_record: sendRecord }) }, context).then(
      (promise) => {
        advise();
        return promise;
      },
    );
    const maxWaitMs = this.#options.after ?? context.maxWaitMs;
    try {
      return await waitFor(start, { ...context, maxWaitMs }, waitOptions(context));
    } finally {
      const promise = await start;
      if (isNew && promise.state === "pending" && context.isCancelled?.()) {
        await context.store.cancel(promise.name);
        if (this.#worker && sendRecord) await cancelCall(this.#worker, context.store.logName(name));
      }
    }
  }

  /**
   * Has the worker make a call whose name no other call can have. Undefined if it was not sent, or if the deployment needs its job:
   * for refusals, quotas, storage limits or labels.
   */
  async #callAtOnce(callArgs: CallArgs, name: string, { store, advise }: CallContext): Promise<CallState | undefined> {
    if (this.#worker === undefined || store.needsJobs) return undefined;
    const state = await callAtOnce(this.#worker, store.logName(name), callArgs);
    // Until the call has a job, a repeat by name would send it again.
    if (state && this.#policy.once) {
      advise?.(
        `The call was sent to ${this.#options.name}, and its outcome is lost: check there before you repeat it.`,
      );
    }
    return state;
  }
}

/** How to wait for a call's job: the server's log messages are sent to the client. */
const waitOptions = (context: CallContext) => ({
  relaysProgress: true,
  onResult: (result: unknown) => sendLogs(result, context),
});

/** The key that a caller sends: the key itself, or the full job name from an earlier answer, which begins with `prefix`. */
const keyIn = (name: string, prefix: string): string =>
  name.startsWith(prefix) ? unescapeId(splitGeneration(name.slice(prefix.length)).base) : name;

function preview(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_PREVIEW_CHARACTERS ? `${text.slice(0, MAX_PREVIEW_CHARACTERS)}…` : text;
}
