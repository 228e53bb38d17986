import { base64url } from "jose";
import { isSame } from "../../functions/auth/secret.ts";

/** The job of a task: its name, and when its promise was created, which distinguishes it from a later job of that name. */
interface TaskJob {
  name: string;
  begun: number;
}

/**
 * Task ids. A job name can be guessed, by design. A task id cannot: it is the job sealed with a keyed MAC, so only clients that
 * were given an id have it. Nothing is stored.
 */
export class TaskHandles {
  readonly #secret: string | (() => Promise<string>);
  readonly #namespace: string;
  /** A value, not a promise: requests must not share promises. */
  #key: CryptoKey | undefined;

  /** @param secret at least 32 characters, or a function that gets them: the same in each isolate for as long as tasks live */
  constructor(secret: string | (() => Promise<string>), namespace: string) {
    this.#secret = secret;
    this.#namespace = namespace;
  }

  /** The id of the task that is a job of `caller`. */
  async seal(name: string, caller: string, begun: number): Promise<string> {
    this.#key ??= await importKey(typeof this.#secret === "string" ? this.#secret : await this.#secret());
    const sealed = utf8.encode(JSON.stringify(["task", this.#namespace, caller, name, begun]));
    const mac = await crypto.subtle.sign("HMAC", this.#key, sealed);
    // No name holds a line break.
    return `${base64url.encode(`${name}\n${begun}`)}.${base64url.encode(new Uint8Array(mac))}`;
  }

  /** The job of a task id; undefined for an id that is forged, damaged or another caller's. */
  async open(taskId: string, caller: string): Promise<TaskJob | undefined> {
    try {
      const [name = "", digits] = strictUtf8.decode(base64url.decode(taskId.split(".", 1)[0] ?? "")).split("\n");
      const begun = Number(digits);
      // The whole id is compared: base64 can spell the same bytes in several ways.
      const isIt = isSame(utf8.encode(await this.seal(name, caller, begun)), utf8.encode(taskId));
      return isIt ? { name, begun } : undefined;
    } catch {
      return undefined;
    }
  }
}

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

function importKey(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", utf8.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}
