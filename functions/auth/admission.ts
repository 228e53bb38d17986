/** Whether callers are admitted: one question, which every part asks that acts for a caller whose token it has not just verified. */
import { ANYONE, callerOf, keysOf } from "../../core/author/index.ts";
import type { AuthConfig } from "./auth-config.ts";

/** Why a caller, by its key, is not admitted, as what follows "the caller"; undefined for one that is. */
export type RefusalOf = (key: string) => Promise<string | undefined>;

/** Asks one check after the other. */
export const refusalBy =
  (checks: readonly RefusalOf[]): RefusalOf =>
  async (key) => {
    for (const check of checks) {
      const reason = await check(key);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };

/** Refuses callers by the names that the configuration and operators block. `blocked`: these names. */
export function blockedCallers(auth: AuthConfig, blocked: () => Promise<readonly string[]>): RefusalOf {
  let known: { names: string; keys: ReadonlySet<string> } = { names: "", keys: new Set() };
  return async (key) => {
    const names = await blocked();
    if (names.length === 0) return undefined;
    const text = names.join("\n");
    if (text !== known.names) known = { names: text, keys: await keysOfNames(names, auth) };
    return known.keys.has(key) ? "is blocked" : undefined;
  };
}

/** Refuses callers without a static token, once their tokens are no longer listed. Of other callers only a request tells. */
export function listedCallers(auth: AuthConfig): RefusalOf {
  let keys: ReadonlySet<string> | undefined;
  return async (key) => {
    // What the deployment does by itself, or for everybody.
    if (auth.AUTH_MODE === "oauth" || key === "") return undefined;
    const tokens = auth.AUTH_MODE === "bearer" ? auth.BEARER_TOKENS : [];
    keys ??= new Set(await Promise.all(tokens.map(async ({ name }) => (await callerOf(name)).key)));
    return keys.has(key) ? undefined : "has no token any more";
  };
}

/** The keys of the callers with these names: of their static tokens, in the log, or the subjects of their OAuth tokens. */
async function keysOfNames(names: readonly string[], auth: AuthConfig): Promise<Set<string>> {
  if (auth.AUTH_MODE === "none") return new Set(names.includes(ANYONE.label) ? [ANYONE.key] : []);
  const ids = (name: string) => (auth.AUTH_MODE === "oauth" ? [oauthId(auth.OAUTH_ISSUER, name)] : []);
  const keysOfName = async (name: string) => [
    ...(await keysOf(name)),
    ...(await Promise.all(ids(name).map(async (id) => (await callerOf(id)).key))),
  ];
  return new Set((await Promise.all(names.map(keysOfName))).flat());
}

/** The id of an OAuth caller. */
export const oauthId = (issuer: string, subject: string): string => JSON.stringify([issuer, subject]);

/** The response to a good token of a caller who is not admitted. It holds no challenge: another token would not help. */
export const refusedCaller = (reason: string) =>
  Response.json({ error: "access_denied", error_description: `This caller ${reason}.` }, { status: 403 });
