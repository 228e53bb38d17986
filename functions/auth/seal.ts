import * as base64url from "jose/base64url";

const utf8 = new TextEncoder();

/** Seals sessions and links to jobs as text that only this deployment can read and make. A new secret voids them, but no task. */
export class Seal {
  readonly #secret: string;
  /** A value, not a promise: requests must not share promises. */
  #key: CryptoKey | undefined;

  /** @param secret at least 32 characters */
  constructor(secret: string) {
    this.#secret = secret;
  }

  /** Seals a value for one `purpose`; `until` is in milliseconds since the epoch. */
  async close(purpose: string, value: unknown, until: number): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const content = utf8.encode(JSON.stringify([until, value]));
    const sealed = await crypto.subtle.encrypt(parameters(iv, purpose), await this.#importKey(), content);
    return base64url.encode(new Uint8Array([...iv, ...new Uint8Array(sealed)]));
  }

  /** The sealed value and its expiry; undefined for text that is forged, damaged, expired or for another purpose. */
  async open(purpose: string, text: string): Promise<{ value: unknown; until: number } | undefined> {
    try {
      const bytes = new Uint8Array(base64url.decode(text));
      const key = await this.#importKey();
      const content = await crypto.subtle.decrypt(parameters(bytes.slice(0, 12), purpose), key, bytes.slice(12));
      const [until, value] = JSON.parse(new TextDecoder().decode(content));
      return until > Date.now() ? { value, until } : undefined;
    } catch {
      return undefined;
    }
  }

  async #importKey(): Promise<CryptoKey> {
    this.#key ??= await importKey(this.#secret);
    return this.#key;
  }
}

async function importKey(secret: string): Promise<CryptoKey> {
  const digest = await crypto.subtle.digest("SHA-256", utf8.encode(secret));
  return crypto.subtle.importKey("raw", digest, "AES-GCM", false, ["encrypt", "decrypt"]);
}

const parameters = (iv: Uint8Array<ArrayBuffer>, purpose: string) => ({
  name: "AES-GCM",
  iv,
  additionalData: utf8.encode(purpose),
});
