import { bytesToBase64Url } from "../resonate/base64.ts";
import { CALLER_HASH, callerKey, isCallerHash, splitKey } from "../resonate/ids.ts";
import { digestOf } from "../resonate/sha256.ts";

/** Who makes a request, as authentication established it. */
export interface Caller {
  /** Tells callers apart; empty where the deployment authenticates nobody. */
  readonly id: string;
  /** The prefix of the caller's own jobs in promise ids; empty where the deployment authenticates nobody. */
  readonly key: string;
  /** How log lines name the caller. */
  readonly label: string;
}

/** The one caller of a deployment that authenticates nobody. */
export const ANYONE: Caller = { id: "", key: "", label: "anyone" };

/** Makes a caller. `id` comes from authentication, and no other caller has it; `label` must be fit for a log. */
export async function callerOf(id: string, label?: string): Promise<Caller> {
  const hash = bytesToBase64Url(await digestOf(id)).slice(0, CALLER_HASH);
  return { id, key: callerKey(hash), label: label ?? hash };
}

/**
 * The keys that a caller may have that is named as in a log, or by its key. The log names an OAuth caller by the hash in its key;
 * since a token's name may look like such a hash, there may be two.
 */
export async function keysOf(caller: string): Promise<string[]> {
  const hash = hashIn(caller);
  return [(await callerOf(caller)).key, ...(hash === undefined ? [] : [callerKey(hash)])];
}

/** The hash in a caller's key, or in its name in the log; undefined for any other text. */
export function hashIn(caller: string): string | undefined {
  const hash = splitKey(caller).key === caller ? caller.slice(1, -1) : caller;
  return isCallerHash(hash) ? hash : undefined;
}
