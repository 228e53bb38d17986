import { isSame } from "../auth/secret.ts";
import { fromBase64Url, toBase64Url } from "../http/base64url.ts";

/**
 * Task ids. A job name can be guessed, by design; a task id cannot: it is the job name sealed with a keyed MAC, so
 * that whoever holds one was given it. Nothing is stored to verify one.
 */
export class TaskHandles {
  readonly #secret: string | (() => Promise<string>);
  readonly #namespace: string;
  /** A value, not a promise: what one request has not finished importing, another does for itself. */
  #key: CryptoKey | undefined;

  /** @param secret at least 32 characters or what asks for them, the same in every isolate of a deployment, for as long as its tasks live */
  constructor(secret: string | (() => Promise<string>), namespace: string) {
    this.#secret = secret;
    this.#namespace = namespace;
  }

  /**
   * The id of the task that is job `name`, for `caller` alone. `begun`: when its promise was created, which tells it from a
   * later job of that name; ids of earlier versions are without.
   */
  async seal(name: string, caller: string, begun?: number): Promise<string> {
    this.#key ??= await importKey(typeof this.#secret === "string" ? this.#secret : await this.#secret());
    const mac = await crypto.subtle.sign("HMAC", this.#key, this.#sealed(name, caller, begun));
    const job = begun === undefined ? name : `${name}\n${begun}`; // no name holds a line break
    return `${toBase64Url(utf8.encode(job))}.${toBase64Url(new Uint8Array(mac))}`;
  }

  /** The job of a task id; undefined for one that is forged, damaged, or another caller's. */
  async open(taskId: string, caller: string): Promise<{ name: string; begun: number | undefined } | undefined> {
    try {
      const [name = "", digits] = strictUtf8.decode(fromBase64Url(taskId.split(".", 1)[0] ?? "")).split("\n");
      const begun = digits === undefined ? undefined : Number(digits);
      // There is one id of a task, and this is it: base64 has other spellings, which are none.
      const isIt = isSame(utf8.encode(await this.seal(name, caller, begun)), utf8.encode(taskId));
      return isIt ? { name, begun } : undefined;
    } catch {
      return undefined;
    }
  }

  #sealed(name: string, caller: string, begun: number | undefined): Uint8Array<ArrayBuffer> {
    return utf8.encode(
      JSON.stringify(["task", this.#namespace, caller, name, ...(begun === undefined ? [] : [begun])]),
    );
  }
}

const utf8 = new TextEncoder();

function importKey(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", utf8.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
