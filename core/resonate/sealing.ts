/**
 * Encryption at rest: parameters and values of promises are encrypted before they are sent to the Resonate server, and
 * decrypted when they come back. The algorithm is AES-256-GCM, bound to the promise's id and the field, so that a text from
 * another promise or the other field is not accepted. Nor is unencrypted text. Ids, tags and times stay readable.
 */
import { base64ToBytes, bytesToBase64 } from "./base64.ts";
import type { Codec, PromiseRecord, Value } from "./connection/protocol.ts";

/** The beginning of encrypted data: base64 has no `:`. The key's name follows, then base64 of a nonce and the text. */
const SEALED_PREFIX = "sealed:";

const NONCE_BYTES = 12;

/** Matches a configured list of keys: base64 of 32 bytes each, separated by commas. */
export const KEYS_PATTERN = /^[\w+/-]{43}=?(,[\w+/-]{43}=?)*$/;

type Field = "param" | "value";

interface Key {
  /** Identifies the key and reveals nothing about it. */
  name: string;
  key: CryptoKey;
}

/** The keys of a deployment: the first encrypts, all decrypt. */
export class Sealing implements Codec {
  readonly encode: Codec["encode"];
  /** With keys, all data is encrypted; without them, data is that has the mark, and cannot be read. */
  readonly mark: string;
  readonly #texts: string[];
  #keys: Key[] | undefined;

  /** @param keys a list that {@link KEYS_PATTERN} matches; without it nothing is encrypted, and encrypted data cannot be read */
  constructor(keys = "") {
    this.#texts = keys === "" ? [] : keys.split(",");
    this.encode = keys === "" ? undefined : (data) => this.seal(data);
    this.mark = keys === "" ? `"${SEALED_PREFIX}` : "";
  }

  /** Encrypts the parameter and value in a request's data. */
  async seal<T>(data: T): Promise<T> {
    const { id, param, value, action } = data as Sealable;
    if (action?.data) return { ...data, action: { ...action, data: await this.seal(action.data) } };
    if (param?.data) return { ...data, param: await this.#encrypt(id, "param", param) };
    return value?.data ? { ...data, value: await this.#encrypt(id, "value", value) } : data;
  }

  /**
   * Decrypts the promises in an answer's data. Promises from a search that cannot be decrypted are returned without content.
   *
   * @throws {Error} for data that was encrypted with another key, was changed or moved, or is unencrypted
   */
  async decode<T>(data: T): Promise<T> {
    const { promise, promises, preload, action } = (data ?? {}) as Answer;
    const opened: Answer = {};
    if (promise) opened.promise = await this.decodeRecord(promise);
    if (preload) opened.preload = await Promise.all(preload.map((each) => this.decodeRecord(each)));
    if (promises)
      opened.promises = await Promise.all(
        promises.map((each) => this.decodeRecord(each).catch(() => ({ ...each, param: {}, value: {} }))),
      );
    if (action) opened.action = { ...action, data: await this.decode(action.data) };
    return { ...data, ...opened };
  }

  /** Decrypts one promise. @throws {Error} as `decode` does */
  async decodeRecord(record: PromiseRecord): Promise<PromiseRecord> {
    const [param, value] = await Promise.all([
      this.#decrypt(record.id, "param", record.param),
      this.#decrypt(record.id, "value", record.value),
    ]);
    return { ...record, ...(param && { param }), ...(value && { value }) };
  }

  async #encrypt(id: string, field: Field, { headers = {}, data = "" }: Value): Promise<Value> {
    const [first] = await this.#ready();
    const { name, key } = first as Key;
    const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const sealed = await crypto.subtle.encrypt(algorithm(id, field, iv), key, base64ToBytes(data));
    const bytes = new Uint8Array(NONCE_BYTES + sealed.byteLength);
    bytes.set(iv);
    bytes.set(new Uint8Array(sealed), NONCE_BYTES);
    return { headers, data: `${SEALED_PREFIX}${name}:${bytesToBase64(bytes)}` };
  }

  async #decrypt(id: string, field: Field, value: Value | undefined): Promise<Value | undefined> {
    if (!value?.data) return value;
    if (!value.data.startsWith(SEALED_PREFIX)) {
      if (!this.encode) return value;
      throw new Error("it is unencrypted");
    }
    const [name = "", text = ""] = value.data.slice(SEALED_PREFIX.length).split(":");
    const key = (await this.#ready()).find((each) => each.name === name);
    if (!key) throw new Error("no key fits");
    const bytes = base64ToBytes(text);
    const opened = await crypto.subtle.decrypt(
      algorithm(id, field, bytes.slice(0, NONCE_BYTES)),
      key.key,
      bytes.slice(NONCE_BYTES),
    );
    return { ...value, data: bytesToBase64(new Uint8Array(opened)) };
  }

  /** Caches the keys and not a promise of them, as requests of one isolate share no promises. */
  async #ready(): Promise<Key[]> {
    this.#keys ??= await Promise.all(this.#texts.map(importKey));
    return this.#keys;
  }
}

interface Sealable {
  id: string;
  param?: Value;
  value?: Value;
  action?: { data?: Sealable };
}

interface Answer {
  promise?: PromiseRecord;
  promises?: PromiseRecord[];
  preload?: PromiseRecord[];
  action?: { data: unknown };
}

async function importKey(text: string): Promise<Key> {
  const bytes = base64ToBytes(text.replaceAll("-", "+").replaceAll("_", "/").padEnd(44, "="));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const key = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
  return { name: bytesToBase64(digest.slice(0, 6)), key };
}

/** A zero byte separates field and id, as a promise's id contains none. */
const algorithm = (id: string, field: Field, iv: Uint8Array<ArrayBuffer>) => ({
  name: "AES-GCM",
  iv,
  additionalData: new TextEncoder().encode(`${field}\0${id}`),
});
