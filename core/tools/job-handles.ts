import * as base64url from "jose/base64url";
import type { Caller } from "../author/caller.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import { isSameSecret } from "../resonate/same-secret.ts";
import { ErrorCode, ProtocolError } from "./mcp.ts";

/** The job of a handle: its name, and when its promise was created, which distinguishes it from a later job of that name. */
interface HandledJob {
  name: string;
  startedAt: number;
}

/**
 * Handles of jobs: task ids, and the state of calls that ask. A job name can be guessed, by design. A handle cannot: it is the job sealed with a keyed MAC, so only clients that
 * were given an id have it. Nothing is stored.
 */
export class JobHandles {
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
  async seal(name: string, caller: string, startedAt: number): Promise<string> {
    this.#key ??= await importKey(typeof this.#secret === "string" ? this.#secret : await this.#secret());
    const sealed = utf8.encode(JSON.stringify(["task", this.#namespace, caller, name, startedAt]));
    const mac = await crypto.subtle.sign("HMAC", this.#key, sealed);
    // No name holds a line break.
    return `${base64url.encode(`${name}\n${startedAt}`)}.${base64url.encode(new Uint8Array(mac))}`;
  }

  /** The job of a task id; undefined for an id that is forged, damaged or another caller's. */
  async open(taskId: string, caller: string): Promise<HandledJob | undefined> {
    try {
      const [name = "", digits] = strictUtf8.decode(base64url.decode(taskId.split(".", 1)[0] ?? "")).split("\n");
      const startedAt = Number(digits);
      // The whole id is compared: base64 can spell the same bytes in several ways.
      const isGenuine = isSameSecret(utf8.encode(await this.seal(name, caller, startedAt)), utf8.encode(taskId));
      return isGenuine ? { name, startedAt } : undefined;
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

/** The caller of a method that names a handle, with the jobs as this caller sees them. */
export interface HandleRequest {
  caller: Caller;
  store: RemoteStore;
  signal?: AbortSignal;
}

/** The promise of a handle; undefined if no handle of this caller is like that. */
export async function findPromise(
  handles: JobHandles,
  taskId: unknown,
  { caller, store, signal }: HandleRequest,
): Promise<DurablePromise | undefined> {
  const job = typeof taskId === "string" ? await handles.open(taskId, caller.id) : undefined;
  const promise = job && (await store.get(job.name, signal));
  // A later job of the same name has another handle.
  return promise?.createdAt === job?.startedAt ? promise : undefined;
}

/** @throws {ProtocolError} -32602 when no handle of this caller is like that */
export async function promiseOf(handles: JobHandles, taskId: unknown, request: HandleRequest): Promise<DurablePromise> {
  const promise = await findPromise(handles, taskId, request);
  if (!promise) throw unknownTaskError();
  return promise;
}

export function unknownTaskError(): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, "taskId: no task has this id");
}
