import type * as z from "zod";
import { $ZodAsyncError } from "zod/v4/core"; // Not as `z.core`, which would load all of zod, with its languages.
import type { Context, JobContext } from "./context.ts";
import { NondeterminismError } from "./context.ts";
import type { Job } from "./job.ts";
import { pathOfChange, returnedObjects, storable } from "./values.ts";

/**
 * The code of a job: see {@link Context}. It may run several times, each time from its start. Its result is stored.
 *
 * @example
 * const greet: DurableFunction<{ name: string }, { text: string }> = async (ctx, { name }) => ({
 *   text: await ctx.step("greet", () => `Hello, ${name}`),
 * });
 */
export type DurableFunction<Args, Result, Env = unknown> = (ctx: JobContext<Args, Env>, args: Args) => Promise<Result>;

/**
 * A job's definition with its code, for `runWorker`.
 *
 * @example
 * const runs: readonly Implementation[] = [waitForSiteRun];
 */
export interface Implementation<Input = unknown, Result = unknown> {
  readonly job: Job;
  /** The schema of the variables and secrets that the code needs. */
  readonly env: z.ZodType | undefined;
  /** The code for jobs that were started with a version of the definition; undefined where it was removed. */
  versionOf(version: number): ((ctx: Context<never>, args: unknown) => Promise<unknown>) | undefined;
  readonly [IMPLEMENTED]?: { input: Input; result: Result };
}

declare const IMPLEMENTED: unique symbol;
declare const ACCEPTED: unique symbol;

/** The type of the arguments that callers pass for a job, whose schema makes those that are stored of them. */
export interface Accepts<Input> {
  readonly [ACCEPTED]?: (input: Input) => void;
}

/**
 * Options of {@link implement}.
 *
 * @example
 * const needs = z.object({ SITE_TOKEN: z.string().default("") });
 * export const run = implement(waitForSite, async (_ctx, { url }) => ({ url }), { env: needs, earlier: { 1: async () => "up" } });
 */
export interface ImplementOptions<Env> {
  /** Schema of the variables and secrets that the code needs. They are checked when the worker starts, and are `ctx.env`. */
  env?: z.ZodType<Env>;
  /**
   * The code of earlier versions of the definition, by version. A job runs with the code of the version that it was
   * started with, on the arguments of that version, whose type it declares. Its result is not checked.
   */
  // oxlint-disable-next-line typescript/no-explicit-any -- the arguments of an earlier version have another type
  earlier?: Record<number, DurableFunction<any, unknown, Env>>;
}

/** Maps the function that `versionOf` returns to the author's own. */
export const authorFunctions = new WeakMap<object, object>();

/**
 * Connects a job's definition with its code.
 *
 * @throws {Error} when it is given no definition or no function
 *
 * @example
 * export const waitForSiteRun = implement(waitForSite, async (ctx, { url }) => {
 *   await ctx.until("up", { every: 30_000, for: DAY }, async ({ signal }) => (await fetch(url, { signal })).ok);
 *   return { url };
 * });
 */
export function implement<Args, Result, Env = unknown, Input = Args>(
  definition: ({ readonly job: Job<Args, Result> } & Accepts<Input>) | Job<Args, Result>,
  run: DurableFunction<Args, NoInfer<Result>, Env>,
  options: ImplementOptions<Env> = {},
): Implementation<Input, Result> {
  const job = "job" in definition ? definition.job : definition;
  if (typeof job?.kind !== "string" || typeof run !== "function") {
    throw new Error("implement takes a definition, as defineDurableTool and defineJob make it, and then its function.");
  }
  const versions = new Map<number, DurableFunction<Args, unknown, Env>>(
    Object.entries(options.earlier ?? {}).map(([version, earlier]) => [Number(version), earlier]),
  );
  versions.set(job.version, run);
  return {
    job: job as Job,
    env: options.env,
    versionOf(version) {
      const code = versions.get(version);
      if (!code) return undefined;
      const isOwn = version === job.version;
      const run = async (ctx: Context<never>, args: unknown) => {
        const checkedArgs = isOwn ? parseArgs(job, args) : parseEarlierArgs(job, args);
        const result = await code(ctx as Context as JobContext<Args, Env>, checkedArgs);
        return storedResult(isOwn ? job : undefined, result);
      };
      authorFunctions.set(run, code);
      return run;
    },
  };
}

/** The arguments of a job's next run, as they are stored. @throws {NondeterminismError} if they do not fit */
export function nextArgs(job: Job, args: unknown): unknown {
  const { success, data, error } = safeParseArgs(job, args);
  if (success) return data;
  throw new NondeterminismError(`ctx.continueAs: these are not arguments of ${job.kind}: ${problemsOf(error)}`);
}

function parseArgs<Args>(job: Job<Args>, args: unknown): Args {
  const { success, data, error } = safeParseArgs(job, args);
  const rule = "Stored arguments are what the schema made of them, which it must";
  if (!success)
    throw new NondeterminismError(`these are not arguments of ${job.kind}: ${problemsOf(error)}. ${rule} accept`);
  const path = pathOfChange(args, data);
  if (path === undefined) return data;
  throw new NondeterminismError(
    `the arguments of ${job.kind} change again${path && ` at ${path}`}. ${rule} leave as it is`,
  );
}

/** The arguments of a job of an earlier version. The schema of that version is gone: the present one may not fit them. */
function parseEarlierArgs<Args>(job: Job<Args>, args: unknown): Args {
  const { success, data } = safeParseArgs(job, args);
  return success && pathOfChange(args, data, true) === undefined ? data : (args as Args);
}

function safeParseArgs<Args>({ kind, args: schema }: Job<Args>, args: unknown) {
  const message = `the arguments of ${kind} are checked by something asynchronous, and again when the job runs. Do that in a step`;
  return parsedAtOnce(schema, args, () => new NondeterminismError(message));
}

/** The stored form of a result. `job`: the job whose output it must fit. */
function storedResult(job: Job | undefined, result: unknown): unknown {
  const value = storable(result, "the function");
  if (typeof result === "object" && result !== null) returnedObjects.set(value as object, result);
  const outcome = job?.result?.safeParse(value);
  if (!outcome || outcome.success) return value;
  throw new NondeterminismError(
    `the function returned a value that does not fit the output of ${job?.kind}: ${problemsOf(outcome.error)}`,
  );
}

/** Refuses an asynchronous schema with `refusal`: each replay would run its checks again, which could then decide otherwise. */
export function parsedAtOnce<T>(schema: z.ZodType<T>, value: unknown, refusal: () => Error): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(value);
  } catch (error) {
    throw error instanceof $ZodAsyncError ? refusal() : error;
  }
}

/** The problems of a value that does not fit its schema, in one line. */
export const problemsOf = ({ issues }: Pick<z.ZodError, "issues">): string =>
  issues.map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message)).join("; ");
