import { type Caller, callerOf, keysOf } from "../../core/author/index.ts";

/**
 * Whether a caller is blocked by one of its names: its label in the log, the name of its static token, or the subject of its
 * OAuth tokens, which is a part of its id.
 */
export function isBlocked({ id, label }: Pick<Caller, "id" | "label">, blocked: readonly string[]): boolean {
  if (blocked.length === 0) return false;
  return [label, id, subjectIn(id)].some((name) => name !== undefined && blocked.includes(name));
}

/** The same by a caller's key, for its object, which knows no name. `issuer`: that of the OAuth tokens. */
export async function isKeyBlocked(key: string, blocked: readonly string[], issuer?: string): Promise<boolean> {
  const keysOfName = async (name: string) => [...(await keysOf(name)), (await callerOf(oauthId(issuer, name))).key];
  return (await Promise.all(blocked.map(keysOfName))).some((keys) => keys.includes(key));
}

/** The id of an OAuth caller. */
export const oauthId = (issuer: string | undefined, subject: string): string => JSON.stringify([issuer, subject]);

/** The subject in the id of an OAuth caller, which is a JSON list of issuer and subject. */
function subjectIn(id: string): string | undefined {
  return id.startsWith("[") ? String(JSON.parse(id)[1]) : undefined;
}

/** The response to a good token of a blocked caller. It holds no challenge: another token would not help. */
export const blockedResponse = () =>
  Response.json({ error: "access_denied", error_description: "This caller is blocked." }, { status: 403 });
