import type { Caller } from "../../core/definitions/caller.ts";

/**
 * Whether a caller is blocked by one of its names: its label in the log, the name of its static token, or the subject of its
 * OAuth tokens, which is a part of its id.
 */
export function isBlocked({ id, label }: Pick<Caller, "id" | "label">, blocked: readonly string[] = []): boolean {
  if (blocked.length === 0) return false;
  return [label, id, subjectIn(id)].some((name) => name !== undefined && blocked.includes(name));
}

/** The subject in the id of an OAuth caller, which is a JSON list of issuer and subject. */
function subjectIn(id: string): string | undefined {
  if (!id.startsWith("[")) return undefined;
  try {
    return String(JSON.parse(id)[1]);
  } catch {
    return undefined;
  }
}
