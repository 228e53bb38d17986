import type { ListedTool } from "./snapshot.ts";
import { type CallPolicy, matches, type WrapOptions } from "./wrap-options.ts";

export interface Policy {
  /** Whether a call is sent at most once. */
  once: boolean;
  /** How long after its end a job answers calls with the same arguments, in milliseconds; undefined: each call is its own job. */
  freshFor: number | undefined;
  /** Whether callers share those jobs. */
  shared: boolean;
  /** What says whether a call may be repeated; `none`: nothing says that a repeat is safe. */
  source: "configured" | "readOnlyHint" | "idempotentHint" | "none";
}

/** @throws {Error} for a policy that contradicts itself */
export function policyOf(tool: ListedTool, { name, policies = {} }: Pick<WrapOptions, "name" | "policies">): Policy {
  const policy: CallPolicy = Object.entries(policies).find(([pattern]) => matches(pattern, tool.name))?.[1] ?? {};
  const source = sourceOf(tool, policy);
  const once = policy.repeatable === undefined ? source === "none" : !policy.repeatable;
  const { shared = false } = policy;
  const freshFor = policy.freshFor ?? (shared ? 0 : undefined);
  if (once && freshFor !== undefined) {
    const option = policy.freshFor === undefined ? "shared" : "freshFor";
    throw new Error(
      `wrapServer: ${option} for ${tool.name} of ${name} needs repeatable as well: the tool does not say that it is safe to repeat`,
    );
  }
  return { once, freshFor, shared, source };
}

function sourceOf({ annotations = {} }: ListedTool, { repeatable }: CallPolicy): Policy["source"] {
  if (repeatable !== undefined) return "configured";
  if (annotations.readOnlyHint === true) return "readOnlyHint";
  if (annotations.idempotentHint === true) return "idempotentHint";
  return "none";
}
