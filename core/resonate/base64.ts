/** Base64 by the fastest means of each runtime: `Buffer` in Node, otherwise (workerd, browsers) the methods of the standard. */

type Bytes = Uint8Array<ArrayBuffer>;

interface NodeBuffer {
  from(content: string | Uint8Array, encoding?: string): Bytes & { toString(encoding: string): string };
}

const { Buffer } = globalThis as { Buffer?: NodeBuffer };
const { fromBase64: bytesOf } = Uint8Array as unknown as { fromBase64?: (text: string) => Bytes };

/** Matches text that `Buffer` decodes as the standard does. For other text it does not fail, but decodes something else. */
const PLAIN = /^[A-Za-z0-9+/]*={0,2}$/;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Base64 of a text's UTF-8. */
export function toBase64(text: string): string {
  return Buffer ? Buffer.from(text, "utf8").toString("base64") : bytesToBase64(encoder.encode(text));
}

/** @throws {Error} for text that is not base64 */
export function fromBase64(text: string): string {
  return decoder.decode(base64ToBytes(text));
}

export function bytesToBase64(bytes: Uint8Array): string {
  return Buffer ? Buffer.from(bytes).toString("base64") : (bytes as Uint8Array & { toBase64(): string }).toBase64();
}

/** Base64url without padding. */
export const bytesToBase64Url = (bytes: Uint8Array): string =>
  bytesToBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** @throws {Error} for text that is not base64 */
export function base64ToBytes(text: string): Bytes {
  if (Buffer && text.length % 4 === 0 && PLAIN.test(text)) return Buffer.from(text, "base64");
  return bytesOf?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
