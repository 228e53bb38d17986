import { isSame } from "../secret.ts";

/**
 * Task ids. A job name can be guessed, by design; a task id cannot: it is the job name sealed with a keyed MAC, so
 * that whoever holds one was given it. Nothing is stored to verify one.
 */
export class TaskHandles {
  readonly #key: Promise<CryptoKey>;
  readonly #namespace: string;

  /** @param secret at least 32 characters, the same in every isolate of a deployment, for as long as its tasks live */
  constructor(secret: string, namespace: string) {
    this.#key = crypto.subtle.importKey("raw", utf8.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    this.#namespace = namespace;
  }

  /** The id of the task that is job `name`, for `caller` alone. */
  async seal(name: string, caller: string): Promise<string> {
    const mac = await crypto.subtle.sign("HMAC", await this.#key, this.#sealed(name, caller));
    return `${toBase64Url(utf8.encode(name))}.${toBase64Url(new Uint8Array(mac))}`;
  }

  /** The job name of a task id; undefined for one that is forged, damaged, or another caller's. */
  async open(taskId: string, caller: string): Promise<string | undefined> {
    try {
      const name = strictUtf8.decode(fromBase64Url(taskId.split(".", 1)[0] ?? ""));
      // There is one id of a task, and this is it: base64 has other spellings, which are none.
      return isSame(utf8.encode(await this.seal(name, caller)), utf8.encode(taskId)) ? name : undefined;
    } catch {
      return undefined;
    }
  }

  #sealed(name: string, caller: string): Uint8Array<ArrayBuffer> {
    return utf8.encode(JSON.stringify(["task", this.#namespace, caller, name]));
  }
}

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

function toBase64Url(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @throws {DOMException} when `text` is not base64url */
function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
