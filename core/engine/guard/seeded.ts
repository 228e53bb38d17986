/** Values that look random and are the same in each pass: derived from the job's seed and the ordinal of the call. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { callbackId, lateOutcomeId } from "../../resonate/ids.ts";

/** `of` identifies the call among those of the job. */
const bytes = (seed: string, of: string): Uint8Array => sha256(utf8ToBytes(`${seed}\n${of}`));

export function seededNumber(seed: string, of: string): number {
  const view = new DataView(bytes(seed, of).buffer);
  return (view.getUint32(0) * 2 ** 21 + (view.getUint32(4) >>> 11)) / 2 ** 53;
}

export function seededUuid(seed: string, of: string): string {
  const value = bytes(seed, of).slice(0, 16);
  const set = (i: number, mask: number, mark: number) => {
    value[i] = ((value[i] as number) & mask) | mark;
  };
  set(6, 0x0f, 0x40);
  set(8, 0x3f, 0x80);
  return bytesToHex(value).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const hashOf = (kind: string, path: string): string => bytesToHex(bytes(kind, path)).slice(0, 32);

/** The id of the promise that a callback settles: known before the promise exists, and the same in each pass. */
export const callbackOf = (job: string, path: string): string => callbackId(job, hashOf("callback", path));

/** The id of the promise that holds the outcome of a step that ended after its job was cancelled. */
export const lateOutcomeOf = (job: string, path: string): string => lateOutcomeId(job, hashOf("outcome", path));
