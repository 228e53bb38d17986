/** Finds the function that a task's promise names, in the version in which its job began. */
import * as z from "zod";
import { type Implementation, VERSION_TAG } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { type JobCall, type JobCode, seedOf } from "../../core/jobs/index.ts";
import { decodeValue, type PromiseRecord } from "../../core/resonate/index.ts";

/** A call as it is stored, with the fields of features. Other Resonate clients write function and arguments alone. */
const StoredCall = z.looseObject({
  func: z.string(),
  args: z.array(z.unknown()),
  version: z.number().default(1),
  seed: z.string().optional(),
});

/** What a task calls, and the code of its job; without code for a feature's own task. */
export interface TaskFunction {
  call: JobCall;
  code: JobCode | undefined;
}

/** The function of a task; undefined if its kind, or the version in which its job began, is not here. */
export type FindFunction = (promise: PromiseRecord) => TaskFunction | undefined;

/** Finds functions among `implementations` and those of features. */
export function functionsOf(
  implementations: readonly Implementation[],
  features: readonly Pick<WorkerFeature, "functions">[],
): FindFunction {
  const byKind = new Map(implementations.map((each) => [each.job.kind, each]));
  return (promise) => {
    const stored = StoredCall.safeParse(decodeValue(promise.param)).data;
    if (!stored) return undefined;
    const call: JobCall = { ...stored, seed: stored.seed ?? seedOf(promise) };
    const implementation = byKind.get(call.func);
    if (!implementation) {
      const isOwn = features.some(({ functions }) => functions?.includes(call.func));
      return isOwn ? { call, code: undefined } : undefined;
    }
    // A job that was started by another Resonate client names no version.
    const version = Number(promise.tags[VERSION_TAG] ?? implementation.job.version);
    return implementation.versionOf(version) && { call, code: { implementation, version } };
  };
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
  const variables = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const environments = new Map<z.ZodType, unknown>();
  const problems: string[] = [];
  for (const { env: schema } of implementations) {
    if (!schema || environments.has(schema)) continue;
    const parsed = schema.safeParse(variables);
    environments.set(schema, parsed.data);
    for (const { path, message } of parsed.error?.issues ?? []) problems.push(`${path.join(".")}: ${message}`);
  }
  if (problems.length > 0) throw new Error(`Configuration: ${problems.join("; ")}`);
  return environments;
}
