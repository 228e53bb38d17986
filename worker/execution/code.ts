/** Finds the function that a job's promise names, in the version in which the job began. */
import * as z from "zod";
import type { Implementation } from "../../core/author/implement.ts";
import { VERSION_TAG } from "../../core/author/job.ts";
import { seedOf } from "../../core/jobs/durable-promise.ts";
import { CLEANUP_FUNCTION, decodeValue } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import type { CachedJob } from "./journal-cache.ts";

/**
 * The parameter of a job's promise: the function to run, its arguments, the seed of its random values, and its limits. Other Resonate
 * clients write function and arguments alone.
 */
const Invocation = z.object({
  func: z.string(),
  args: z.array(z.unknown()),
  seed: z.string().optional(),
  cleanup: z.number().optional(),
  storage: z.number().optional(),
});

/** A version of a durable function with the job's arguments. */
export interface FoundFunction {
  code: NonNullable<ReturnType<Implementation["versionOf"]>>;
  args: unknown;
  seed: string;
  /** How long the promise outlives the job's deadline, to leave time for a clean-up, in milliseconds. */
  cleanup: number;
  /** How many bytes of files the job may store; 0 for any number. */
  storage: number;
  implementation: Implementation;
}

/** A job's function, or {@link CLEANUP_FUNCTION}: the clean-up of a cancelled job. */
export type FoundCode = FoundFunction | typeof CLEANUP_FUNCTION;

/** The code for a job; undefined if its kind, or the version in which it began, is not among `implementations`. */
export function codeFor(promise: PromiseRecord, implementations: readonly Implementation[]): FoundCode | undefined {
  const invocation = Invocation.safeParse(decodeValue(promise.param)).data;
  if (invocation?.func === CLEANUP_FUNCTION) return CLEANUP_FUNCTION;
  const implementation = implementations.find(({ job }) => job.kind === invocation?.func);
  if (!invocation || !implementation) return undefined;
  // A job that was started by another Resonate client names no version.
  const version = promise.tags[VERSION_TAG] ?? implementation.job.version;
  const code = implementation.versionOf(Number(version));
  const { args, cleanup = 0, storage = 0 } = invocation;
  return code && { code, args: args[0], seed: seedOf(invocation, promise), cleanup, storage, implementation };
}

/**
 * The code and the arguments of a job's newest run, and its part of the runtime; undefined if this worker lacks the code. The first
 * run may go on where an earlier attempt ended.
 */
export function codeOfRun(cached: CachedJob, found: FoundFunction) {
  const { run } = cached.journal;
  if (run) {
    const code = found.implementation.versionOf(run.version);
    return (
      code && { code, args: run.args, memo: undefined, runtime: { run, seed: run.seed, startedAt: run.startedAt } }
    );
  }
  const { memo, args, seed } = { ...found, ...cached.resumed };
  return { code: found.code, args, memo, runtime: { seed } };
}

/**
 * Reads the environment of each implementation, by the schema that the implementation declares.
 *
 * @throws {Error} naming the variables that are missing or wrong
 */
export function environmentsOf(
  implementations: readonly Implementation[],
  env: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<z.ZodType, unknown> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const environments = new Map<z.ZodType, unknown>();
  const problems: string[] = [];
  for (const { env: schema } of implementations) {
    if (!schema || environments.has(schema)) continue;
    const parsed = schema.safeParse(given);
    environments.set(schema, parsed.data);
    for (const { path, message } of parsed.error?.issues ?? []) problems.push(`${path.join(".")}: ${message}`);
  }
  if (problems.length > 0) throw new Error(`Configuration: ${problems.join("; ")}`);
  return environments;
}
