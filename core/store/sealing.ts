/**
 * Encryption at rest: parameters and values of promises are encrypted before they are sent to the Resonate server and
 * decrypted when they come back, with AES-256-GCM and bound to the promise's id. Ids, tags and times stay readable.
 */
import { base64ToBytes, bytesToBase64 } from "./base64.ts";
import type { PromiseRecord, Value } from "./protocol.ts";

/** The beginning of encrypted data, which base64 never has. The key's name follows, then base64 of a nonce and the text. */
const MARK = "sealed:";

/** Whether an answer may hold encrypted data: the mark at the beginning of a JSON text. */
export const maySeal = (json: string): boolean => json.includes(`"${MARK}`);

/** The size of the algorithm's nonce in bytes. */
const NONCE = 12;

/** Matches a configured list of keys: base64 of 32 bytes each, separated by commas. */
export const KEYS = /^[\w+/-]{43}=?(,[\w+/-]{43}=?)*$/;

interface Key {
  /** Identifies the key and reveals nothing of it. */
  name: string;
  key: CryptoKey;
}

/** The keys of a deployment: the first encrypts, all decrypt. */
export class Sealing {
  readonly #texts: string[];
  #keys: Key[] | undefined;

  /** @param keys a list as {@link KEYS} has it; without one nothing is encrypted, and encrypted data cannot be read */
  constructor(keys = "") {
    this.#texts = keys === "" ? [] : keys.split(",");
  }

  /** Whether requests are encrypted. */
  get isOn(): boolean {
    return this.#texts.length > 0;
  }

  /** Encrypts the parameter and value in a request's data. */
  async seal<T>(data: T): Promise<T> {
    const { id, param, value, action } = data as Sealable;
    if (action?.data) return { ...data, action: { ...action, data: await this.seal(action.data) } };
    if (param?.data) return { ...data, param: await this.#encrypt(id, param) };
    return value?.data ? { ...data, value: await this.#encrypt(id, value) } : data;
  }

  /**
   * Decrypts the promises in an answer's data; promises that a search found stay as they are where no key fits.
   *
   * @throws {Error} for data that was encrypted with another key, or was changed
   */
  async open<T>(data: T): Promise<T> {
    const { promise, promises, preload, action } = (data ?? {}) as Answer;
    const opened: Answer = {};
    if (promise) opened.promise = await this.record(promise);
    if (preload) opened.preload = await Promise.all(preload.map((each) => this.record(each)));
    if (promises) opened.promises = await Promise.all(promises.map((each) => this.record(each).catch(() => each)));
    if (action) opened.action = { ...action, data: await this.open(action.data) };
    return { ...data, ...opened };
  }

  /** @throws {Error} as `open` does */
  async record(record: PromiseRecord): Promise<PromiseRecord> {
    const [param, value] = await Promise.all(
      [record.param, record.value].map((each) => this.#decrypt(record.id, each)),
    );
    return { ...record, ...(param && { param }), ...(value && { value }) };
  }

  async #encrypt(id: string, { headers = {}, data = "" }: Value): Promise<Value> {
    const [first] = await this.#ready();
    const { name, key } = first as Key;
    const iv = crypto.getRandomValues(new Uint8Array(NONCE));
    const sealed = await crypto.subtle.encrypt(algorithm(id, iv), key, base64ToBytes(data));
    const bytes = new Uint8Array(NONCE + sealed.byteLength);
    bytes.set(iv);
    bytes.set(new Uint8Array(sealed), NONCE);
    return { headers, data: `${MARK}${name}:${bytesToBase64(bytes)}` };
  }

  async #decrypt(id: string, value: Value | undefined): Promise<Value | undefined> {
    if (!value?.data?.startsWith(MARK)) return value;
    const [name, text = ""] = value.data.slice(MARK.length).split(":");
    const key = (await this.#ready()).find((each) => each.name === name);
    if (!key) throw new Error("no key fits");
    const bytes = base64ToBytes(text);
    const opened = await crypto.subtle.decrypt(algorithm(id, bytes.slice(0, NONCE)), key.key, bytes.slice(NONCE));
    return { ...value, data: bytesToBase64(new Uint8Array(opened)) };
  }

  /** Kept as values: requests of one isolate share no promises. */
  async #ready(): Promise<Key[]> {
    this.#keys ??= await Promise.all(this.#texts.map(imported));
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

async function imported(text: string): Promise<Key> {
  const bytes = base64ToBytes(text.replaceAll("-", "+").replaceAll("_", "/").padEnd(44, "="));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const key = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
  return { name: bytesToBase64(digest.slice(0, 6)), key };
}

const algorithm = (id: string, iv: Uint8Array<ArrayBuffer>) => ({
  name: "AES-GCM",
  iv,
  additionalData: new TextEncoder().encode(id),
});
