/** Base64 of UTF-8, each runtime's fastest way: Node's `Buffer`, elsewhere (workerd, browsers) the standard's methods. */

interface NodeBuffer {
  from(text: string, encoding: string): Uint8Array<ArrayBuffer> & { toString(encoding: string): string };
}

interface Base64Array extends Uint8Array<ArrayBuffer> {
  toBase64(): string;
}

const { Buffer } = globalThis as { Buffer?: NodeBuffer };
const { fromBase64: bytesOf } = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array };

/** What `Buffer` reads just as the standard does; it makes something of whatever else it is given. */
const PLAIN = /^[A-Za-z0-9+/]*={0,2}$/;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function toBase64(text: string): string {
  return Buffer ? Buffer.from(text, "utf8").toString("base64") : (encoder.encode(text) as Base64Array).toBase64();
}

/** @throws {Error} for what is no base64 */
export function fromBase64(text: string): string {
  if (Buffer && text.length % 4 === 0 && PLAIN.test(text)) return decoder.decode(Buffer.from(text, "base64"));
  const bytes = bytesOf?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return decoder.decode(bytes);
}
