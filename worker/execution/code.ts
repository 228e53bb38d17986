/** What runs the jobs of a worker: the function that a job's promise names, of the version with which it began. */
import * as z from "zod";
import type { Implementation } from "../../core/author/implement.ts";
import { VERSION_TAG } from "../../core/definitions/job.ts";
import { AFTER } from "../../core/jobs/after.ts";
import { decodeValue } from "../../core/store/codec.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";

/** What a job's promise holds: the function to run and its arguments. */
const Invocation = z.object({ func: z.string(), args: z.array(z.unknown()) });

/** What runs a job: a version of its function, with the job's arguments, or what is done after a cancelled one. */
export type FoundCode =
  | { code: NonNullable<ReturnType<Implementation["versionOf"]>>; args: unknown; implementation: Implementation }
  | typeof AFTER;

/** What runs a job; undefined for one of a kind, or of a version of it, that is not among these. */
export function codeFor(promise: PromiseRecord, implementations: readonly Implementation[]): FoundCode | undefined {
  const invocation = Invocation.safeParse(decodeValue(promise.param)).data;
  if (invocation?.func === AFTER) return AFTER;
  const implementation = implementations.find(({ job }) => job.kind === invocation?.func);
  if (!invocation || !implementation) return undefined;
  const version = promise.tags[VERSION_TAG];
  // A job from before there were versions begins anew: nothing that it had done is of another form.
  const code =
    version === undefined
      ? (implementation.versionOf(0) ?? implementation.versionOf(implementation.job.version))
      : implementation.versionOf(Number(version));
  return code && { code, args: invocation.args[0], implementation };
}

/**
 * The values that each implementation has asked for, by the schema that it has asked with.
 *
 * @throws {Error} naming the variables that one needs and the environment lacks
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
