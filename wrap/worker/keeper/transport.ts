/** The transport to a program that a keeper holds. Disconnecting from it leaves the program as it is; closing ends it. */
import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { OWN } from "../request-state.ts";
import { type Attached, attach, joined, type KeptProgram } from "./attach.ts";

/** How long a program may take to end, in milliseconds. */
const END = 7_000;

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

type Message = { id?: string | number; method?: string; params?: Record<string, unknown> };

/** Keepers that this process uses: when it ends by itself, so do they, and when it is killed, they wait for the next. */
const used = new Set<number>();
process.once("exit", (code) => {
  if (code !== 0) return;
  for (const pid of used) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has ended a moment ago.
    }
  }
});

export class KeptTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Told the id of a request of which nothing will be heard. */
  onlost?: (id: string) => void;
  readonly keeper: string;
  /** What the program writes beside the protocol. */
  readonly stderr = new PassThrough();
  readonly pid = null;
  #attached: Attached | undefined;
  /** Whether the program, or its keeper, has ended. */
  hasEnded = false;
  /** The SDK's client counts its requests, as the one before it did: the program gets an id that no other has. */
  readonly #prefix = `${crypto.randomUUID().slice(0, 8)}-`;

  /** To the program that a keeper holds, besides whoever uses it. */
  constructor(keeper: string, attached?: Attached) {
    this.keeper = keeper;
    this.#attached = attached;
  }

  /** To use the program alone. @throws {Error} saying why it does not start */
  static async use(program: KeptProgram): Promise<KeptTransport> {
    const attached = await attach(program);
    return new KeptTransport(attached.keeper, attached);
  }

  /** Whether an earlier worker has opened the session, which goes on. */
  get isOpen(): boolean {
    return this.#attached?.hello.isOpen === true;
  }

  /** @throws {Gone} when there is no such keeper any more */
  async start(): Promise<void> {
    this.#attached ??= await joined(this.keeper);
    const { socket, hello, read } = this.#attached;
    const { pid } = hello;
    if (pid !== undefined) used.add(pid);
    socket.on("error", (error) => this.onerror?.(error));
    const closed = () => {
      this.hasEnded = true;
      if (pid !== undefined) used.delete(pid);
      this.stderr.end();
      this.onclose?.();
    };
    if (socket.destroyed) queueMicrotask(closed);
    else socket.once("close", closed);
    read((line) => this.#take(line[0], line.slice(1)));
  }

  send(message: JSONRPCMessage): Promise<void> {
    return this.#write(`m${JSON.stringify(this.#outward(message as Message))}`);
  }

  /** Sends a request, unless the program has it; its answer is kept until it is {@link recorded}. */
  sendKept(message: JSONRPCMessage): Promise<void> {
    return this.#write(`k${JSON.stringify(message)}`);
  }

  /** The answer of a request is written down, or nobody will ask for it. */
  recorded(id: string): void {
    void this.#write(`a${id}`).catch(() => {});
  }

  async close(): Promise<void> {
    const { socket, hello } = this.#attached ?? {};
    if (!socket || socket.destroyed) return;
    if (hello?.pid === undefined) {
      socket.end();
      return;
    }
    const over = new Promise((resolve) => socket.once("close", resolve));
    socket.write("e\n");
    await Promise.race([over, delay(END, undefined, { ref: false })]);
    socket.destroy();
  }

  #write(line: string): Promise<void> {
    const socket = this.#attached?.socket;
    if (!socket?.writable) return Promise.reject(Object.assign(new Error("Not connected"), { code: "NotConnected" }));
    return new Promise((resolve) => {
      if (socket.write(`${line}\n`)) resolve();
      else socket.once("drain", resolve);
    });
  }

  #take(kind: string | undefined, text: string): void {
    if (kind === "l") this.onlost?.(text);
    else if (kind === "x") this.onerror?.(new Error(JSON.parse(text).message));
    else if (kind === "s") this.stderr.write(JSON.parse(text));
    else if (kind === "m") {
      try {
        this.onmessage?.(this.#inward(JSON.parse(text)) as JSONRPCMessage);
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }

  #outward(message: Message): Message {
    const { id, method, params } = message;
    if (method === undefined) return message;
    const own = (id: unknown) => `${this.#prefix}${JSON.stringify(id)}`;
    if (id !== undefined) return isUnique(id) ? message : { ...message, id: own(id) };
    if (method !== "notifications/cancelled" || isUnique(params?.requestId)) return message;
    return { ...message, params: { ...params, requestId: own(params?.requestId) } };
  }

  #inward(message: Message): Message {
    const { id, method, params } = message;
    const given = (id: unknown) =>
      typeof id === "string" && id.startsWith(this.#prefix) ? JSON.parse(id.slice(this.#prefix.length)) : id;
    if (method === undefined) return id === undefined ? message : { ...message, id: given(id) };
    const meta = params?._meta as Record<string, unknown> | undefined;
    if (meta?.[SUBSCRIPTION] === undefined) return message;
    return { ...message, params: { ...params, _meta: { ...meta, [SUBSCRIPTION]: given(meta[SUBSCRIPTION]) } } };
  }
}

const isUnique = (id: unknown) => typeof id === "string" && id.startsWith(OWN);
