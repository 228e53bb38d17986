/** Who makes a request, as authentication established it. */
export interface Caller {
  /** Tells callers apart; empty where the deployment authenticates nobody. */
  readonly id: string;
  /** What stands before the caller's own jobs in promise ids; empty where the deployment authenticates nobody. */
  readonly key: string;
  /** How log lines name the caller. */
  readonly label: string;
}

/** The one caller of a deployment that authenticates nobody. */
export const ANYONE: Caller = { id: "", key: "", label: "anyone" };

/** In characters of base64url, 6 bits each: nobody finds an identity with another caller's key. */
const KEY_LENGTH = 16;

/** `id` is what authentication vouches for and no other caller has; `label` must not tell more than a log may. */
export async function callerOf(id: string, label?: string): Promise<Caller> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id)));
  const base64 = btoa(String.fromCharCode(...digest));
  const hash = base64.replaceAll("+", "-").replaceAll("/", "_").slice(0, KEY_LENGTH);
  return { id, key: `c${hash}.`, label: label ?? hash };
}

/** A promise's id within its namespace, split into the key of the caller it belongs to, if to one, and the job name. */
export function splitKey(id: string): { key: string; name: string } {
  const key = /^c[\w-]{16}\./.exec(id)?.[0] ?? "";
  return { key, name: id.slice(key.length) };
}
