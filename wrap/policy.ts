import type { ListedTool } from "./snapshot.ts";
import { type CallPolicy, fits, type WrapOptions } from "./wrap-options.ts";

export interface Policy {
  /** Whether a call is sent at most once. */
  once: boolean;
  /** How long after its end a job answers calls with the same arguments, in milliseconds; undefined: each call is its own job. */
  freshFor: number | undefined;
  /** Whether callers share those jobs. */
  shared: boolean;
  /** Why a call may, or may not, be repeated. */
  because: "configured" | "readOnlyHint" | "idempotentHint" | "nothing says that a repeat is safe";
}

/** @throws {Error} for a policy that contradicts itself */
export function policyOf(tool: ListedTool, { name, policies = {} }: Pick<WrapOptions, "name" | "policies">): Policy {
  const given: CallPolicy = Object.entries(policies).find(([pattern]) => fits(pattern, tool.name))?.[1] ?? {};
  const because = reason(tool, given);
  const once = given.repeatable === undefined ? because.startsWith("nothing") : !given.repeatable;
  const { shared = false } = given;
  const freshFor = given.freshFor ?? (shared ? 0 : undefined);
  if (once && freshFor !== undefined) {
    const option = given.freshFor === undefined ? "shared" : "freshFor";
    throw new Error(
      `wrapServer: ${option} for ${tool.name} of ${name} needs repeatable as well: the tool does not say that it is safe to repeat`,
    );
  }
  return { once, freshFor, shared, because };
}

function reason({ annotations = {} }: ListedTool, { repeatable }: CallPolicy): Policy["because"] {
  if (repeatable !== undefined) return "configured";
  if (annotations.readOnlyHint === true) return "readOnlyHint";
  if (annotations.idempotentHint === true) return "idempotentHint";
  return "nothing says that a repeat is safe";
}
