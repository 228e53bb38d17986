import type { Caller } from "../../core/author/index.ts";
import type { ObjectPart } from "../../core/jobs/index.ts";
import { isBlocked } from "../../functions/auth/blocked.ts";

/** The remote method of a caller's object that says whether the caller is blocked. */
export interface BlockedMethods {
  /** By the current deployment: an edge of an earlier one may still hold streams. */
  isBlocked(caller: Caller): Promise<boolean>;
}

/** `blocked`: the names of the blocked callers. */
export function blockedCallers(blocked: () => Promise<readonly string[]>): ObjectPart {
  const methods: BlockedMethods = { isBlocked: async (caller) => isBlocked(caller, await blocked()) };
  return { name: "blocked-callers", methods: { ...methods } };
}
