import { gcm } from "@noble/ciphers/aes.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { bytesToBase64Url, CALLBACKS_PURPOSE } from "../../core/resonate/index.ts";

/**
 * The address by which an outside system may settle a promise of a job, valid `until` a time in milliseconds since the epoch. `seed` is
 * that of the job: a later job of the same name has another.
 */
export type CallbackUrl = (promiseId: string, seed: string, until: number) => string;

/**
 * Makes addresses of callbacks, which the edge opens with the same key; undefined if the variables for it are not set. A
 * function must get the same address for a promise in each execution, so the nonce is derived from the sealed content.
 */
export function callbackUrls({ PUBLIC_URL, VIEW_KEY }: Readonly<Record<string, string | undefined>>) {
  if (!PUBLIC_URL || !VIEW_KEY) return undefined;
  const key = sha256(utf8ToBytes(VIEW_KEY));
  const nonces = sha256(utf8ToBytes(`nonces ${VIEW_KEY}`));
  const url: CallbackUrl = (promiseId, seed, until) => {
    const content = utf8ToBytes(JSON.stringify([until, [promiseId, seed]]));
    const nonce = hmac(sha256, nonces, content).slice(0, 12);
    const sealed = concatBytes(nonce, gcm(key, nonce, utf8ToBytes(CALLBACKS_PURPOSE)).encrypt(content));
    const text = bytesToBase64Url(Uint8Array.from(sealed));
    return new URL(`/${CALLBACKS_PURPOSE}/${text}`, PUBLIC_URL).href;
  };
  return url;
}
