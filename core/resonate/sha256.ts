export const hex = (bytes: Uint8Array): string => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** The SHA-256 of bytes or of a text's UTF-8. */
export async function digestOf(content: string | Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** The same in hexadecimal. */
export const sha256Of = async (content: string | Uint8Array<ArrayBuffer>): Promise<string> =>
  hex(await digestOf(content));
