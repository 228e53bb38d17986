/** The transport to a hosted program. Losing the connection leaves the program running; closing the transport ends it. */
import { PassThrough } from "node:stream";
import { type JSONRPCMessage, SUBSCRIPTION_ID_META_KEY, type Transport } from "@modelcontextprotocol/client";
import { parseExact, within } from "../../../core/resonate/index.ts";
import { tidyHandshake } from "../protocol-values.ts";
import { NotSent } from "./errors.ts";
import { attachToHost, type HostConnection, type HostedProgram, joinHost } from "./host-connection.ts";
import { ID_PREFIX } from "./open-request.ts";

/** How long a program may take to exit, in milliseconds. */
const EXIT_TIMEOUT_MS = 7_000;

type Message = { id?: string | number; method?: string; params?: Record<string, unknown> };

/** The process ids of the hosts in use. They end when this process exits; if it is killed, they wait for the next worker. */
const hostProcesses = new Set<number>();
process.once("exit", (code) => {
  if (code === 0) endPrograms();
});

export function endPrograms(): void {
  for (const pid of hostProcesses) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // The host has just ended.
    }
  }
}

export class HostedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Called with the id of each request whose answer is lost. */
  onAnswerLost?: (id: string) => void;
  readonly host: string;
  readonly stderr = new PassThrough();
  #connection: HostConnection | undefined;
  hasEnded = false;
  /** Keeps request ids unique, because the SDK's client counts from 0, as did the clients of earlier workers. */
  readonly #prefix = `${crypto.randomUUID().slice(0, 8)}-`;

  /** Without a `connection`, joins the worker that uses the program of this host. */
  constructor(host: string, connection?: HostConnection) {
    this.host = host;
    this.#connection = connection;
  }

  /** Uses the program alone. @throws {Error} saying why the program does not start */
  static async use(program: HostedProgram): Promise<HostedTransport> {
    const connection = await attachToHost(program);
    return new HostedTransport(connection.host, connection);
  }

  /** Whether an earlier worker has opened the session. */
  get isOpen(): boolean {
    return this.#connection?.hello.isOpen === true;
  }

  /** @throws {OutcomeUnknown} if the host is gone */
  async start(): Promise<void> {
    this.#connection ??= await joinHost(this.host);
    const { socket, hello, read } = this.#connection;
    const { pid } = hello;
    if (pid !== undefined) hostProcesses.add(pid);
    socket.on("error", (error) => this.onerror?.(error));
    const onClosed = () => {
      this.hasEnded = true;
      if (pid !== undefined) hostProcesses.delete(pid);
      this.stderr.end();
      this.onclose?.();
    };
    if (socket.destroyed) queueMicrotask(onClosed);
    else socket.once("close", onClosed);
    read((line) => this.#receive(line[0], line.slice(1)));
  }

  send(message: JSONRPCMessage): Promise<void> {
    return this.#write(`m${JSON.stringify(this.#outward(message as Message))}`);
  }

  /** Sends a request unless the program already has it. The host stores the answer until {@link release}. */
  sendRecoverable(message: JSONRPCMessage): Promise<void> {
    return this.#write(`k${JSON.stringify(message)}`);
  }

  /** The answer to a request need not be stored any longer. */
  release(id: string): void {
    void this.#write(`a${id}`).catch(() => {});
  }

  async close(): Promise<void> {
    const { socket, hello } = this.#connection ?? {};
    if (!socket || socket.destroyed) return;
    if (hello?.pid === undefined) {
      socket.end();
      return;
    }
    const close = new Promise((resolve) => socket.once("close", resolve));
    socket.write("e\n");
    await within(close, EXIT_TIMEOUT_MS);
    socket.destroy();
  }

  /** Leaves the program, with its session, to the next worker. */
  leave(): void {
    this.#connection?.socket.end();
  }

  #write(line: string): Promise<void> {
    const socket = this.#connection?.socket;
    if (!socket?.writable) return Promise.reject(new NotSent("the connection to the program was lost"));
    return new Promise((resolve) => {
      if (socket.write(`${line}\n`)) resolve();
      else socket.once("drain", resolve);
    });
  }

  #receive(kind: string | undefined, text: string): void {
    if (kind === "l") this.onAnswerLost?.(text);
    else if (kind === "x") this.onerror?.(new Error(JSON.parse(text).message));
    else if (kind === "s") this.stderr.write(JSON.parse(text));
    else if (kind === "m" || kind === "r") {
      try {
        // The program's own id of the request stands in the answer.
        const end = kind === "r" ? text.indexOf(" ") : 0;
        const message = parseExact(text.slice(end)) as Message;
        if (end > 0) message.id = JSON.parse(text.slice(0, end));
        tidyHandshake(message);
        this.onmessage?.(this.#inward(message) as JSONRPCMessage);
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }

  #outward(message: Message): Message {
    const { id, method, params } = message;
    if (method === undefined) return message;
    const prefixedId = (id: unknown) => `${this.#prefix}${JSON.stringify(id)}`;
    if (id !== undefined) return isUnique(id) ? message : { ...message, id: prefixedId(id) };
    if (method !== "notifications/cancelled" || isUnique(params?.requestId)) return message;
    return { ...message, params: { ...params, requestId: prefixedId(params?.requestId) } };
  }

  #inward(message: Message): Message {
    const { id, method, params } = message;
    const originalId = (id: unknown) =>
      typeof id === "string" && id.startsWith(this.#prefix) ? JSON.parse(id.slice(this.#prefix.length)) : id;
    if (method === undefined) return id === undefined ? message : { ...message, id: originalId(id) };
    const { [SUBSCRIPTION_ID_META_KEY]: subscription, ...meta } = Object(params?._meta);
    if (subscription === undefined) return message;
    const _meta = { ...meta, [SUBSCRIPTION_ID_META_KEY]: originalId(subscription) };
    return { ...message, params: { ...params, _meta } };
  }
}

const isUnique = (id: unknown) => typeof id === "string" && id.startsWith(ID_PREFIX);
