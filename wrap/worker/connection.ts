/**
 * One connection to a wrapped server. The SDK's client makes it and keeps it; calls go over it as they are, message by
 * message, because what the server answers is passed on as it is: nothing that the SDK does not know gets lost, and a
 * question, an answer or a task is seen for what it is.
 */
import type { Readable } from "node:stream";
import {
  type Client,
  type JSONRPCMessage,
  LATEST_PROTOCOL_VERSION,
  type StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Log } from "../../core/definitions/context.ts";
import type { ListedTool } from "../snapshot.ts";
import { clientOf, envelopeOf, MODERN } from "./client.ts";
import { classified, Gone, Lost, NotSent, RpcError, tooLong } from "./errors.ts";
import { KeptTransport } from "./keeper/transport.ts";
import { passOn } from "./questions.ts";
import {
  type Exchange,
  type Incoming,
  type Resumable,
  requestId,
  type Session,
  type Under,
  type Waiting,
} from "./request-state.ts";
import { logLines, MAX_LINE, type Target, transportFor, transportOf } from "./target.ts";

const CONNECTION_LOST = "the connection to the server was lost";
const STREAM_ENDED = "the server ended the connection";
const ENDED = "the program that it was sent to has ended";

type Era = "modern" | "legacy";

interface ConnectionOptions {
  target: Target;
  log: Log;
  /** The agreed revision of an earlier connection, where it is known: a program need not be started twice to find out. */
  revision?: string | undefined;
  onToolsChanged?(): void;
  /** In milliseconds. */
  timeout: number;
}

export class Connection {
  readonly client: Client;
  readonly #target: Target;
  readonly #log: Log;
  #transport: Transport;
  #waiting = new Map<string, Waiting>();
  #isOpen = true;
  /** The tools as they were when it was opened, or when they had changed since. */
  tools: readonly ListedTool[] = [];
  /** Resolves when it is over. */
  readonly closed: Promise<void>;

  private constructor(client: Client, transport: Transport, target: Target, log: Log) {
    this.client = client;
    this.#transport = transport;
    this.#target = target;
    this.#log = log;
    const closed = Promise.withResolvers<void>();
    this.closed = closed.promise;
    let why = CONNECTION_LOST;
    client.onclose = () => {
      this.#isOpen = false;
      for (const { reject, isApart } of [...this.#waiting.values()]) if (!isApart) reject(new Lost(why));
      closed.resolve();
    };
    client.onerror = ({ message }) => {
      why = tooLong(message) ?? why;
      log.debug("wrapped server", { reason: message });
    };
  }

  /** @throws {Error} saying why it cannot be reached */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const transport = await transportOf(options.target);
    const isKept = transport instanceof KeptTransport;
    const isLegacy = (options.revision ?? MODERN) < MODERN || (isKept && transport.isOpen);
    try {
      return await Connection.#open(transport, isLegacy ? "legacy" : "auto", options);
    } catch (error) {
      // A program of the 2025 revisions may end when it is asked for the newer one.
      if (!isKept || isLegacy || !transport.hasEnded) throw error;
      return Connection.#open(await transportOf(options.target), "legacy", options);
    }
  }

  static async #open(
    transport: Transport,
    mode: "legacy" | "auto",
    { target, log, onToolsChanged, timeout }: ConnectionOptions,
  ): Promise<Connection> {
    const client = clientOf(mode, onToolsChanged);
    const isProgram = transport instanceof StdioClientTransport || transport instanceof KeptTransport;
    const lastLine = isProgram ? logLines(transport.stderr as Readable | null, log) : () => "";
    const connection = new Connection(client, transport, target, log);
    try {
      await client.connect(transport, { timeout });
    } catch (error) {
      await client.close().catch(() => {});
      await transport.close().catch(() => {});
      // A program that does not start says why in words of its own.
      const said = lastLine();
      if (said === "") throw error;
      throw new Error(`${(error as Error).message}; it wrote: ${said}`, { cause: error });
    }
    connection.#listen(transport);
    return connection;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get era(): Era {
    return this.client.getProtocolEra() === "modern" ? "modern" : "legacy";
  }

  get revision(): string {
    return this.client.getNegotiatedProtocolVersion() ?? LATEST_PROTOCOL_VERSION;
  }

  /** What holds the program, where that outlives its worker. */
  get keeper(): string | undefined {
    return this.#transport instanceof KeptTransport ? this.#transport.keeper : undefined;
  }

  /** What tells this connection's state at the server, where it keeps one. */
  get sessionId(): string | undefined {
    return this.keeper ?? this.#transport.sessionId;
  }

  close(): Promise<void> {
    return this.client.close();
  }

  /** Sends a request; `id` is one that no other has, `place` the session that it belongs to, if not this one. */
  request(
    method: string,
    params: Record<string, unknown>,
    exchange: Exchange = {},
    id = requestId(),
    place?: Session,
  ): Under {
    const meta = { ...this.#envelope(), ...(exchange.onProgress && { progressToken: id }) };
    const given = params._meta as Record<string, unknown> | undefined;
    const _meta = { ...given, ...meta };
    const whole = { ...params, ...(Object.keys(_meta).length > 0 && { _meta }) };
    const message = { jsonrpc: "2.0" as const, id, method, params: whole } as JSONRPCMessage;
    const { isKept } = exchange;
    const send = (transport: Transport, options: Parameters<Transport["send"]>[1]) =>
      isKept && transport instanceof KeptTransport ? transport.sendKept(message) : transport.send(message, options);
    return this.#exchange(id, exchange, send, place);
  }

  /** Answers a request of the server's that came to another process, in the session that it came in. */
  async respond(place: Session, id: string | number, result: Record<string, unknown>): Promise<void> {
    const transport = this.#ownTransport(`${id}`, place);
    if (transport !== this.#transport) await transport.start();
    await transport.send({ jsonrpc: "2.0", id, result } as JSONRPCMessage);
    if (transport !== this.#transport && transport instanceof KeptTransport) await transport.close();
  }

  /** Picks up the stream of an answer to a request that was sent in another session, by another process. */
  resume({ request, event, session, revision }: Resumable, exchange: Exchange): Under {
    const place = { sessionId: session, protocolVersion: revision };
    return this.#exchange(
      request,
      exchange,
      (transport) => {
        transport.onerror = ({ message }) => {
          if (/^Maximum reconnection/.test(message)) this.#waiting.get(request)?.reject(new Lost(message));
        };
        const onresumptiontoken = (token: string) => exchange.onEventId?.(token);
        return (transport as StreamableHTTPClientTransport).resumeStream(event, { onresumptiontoken });
      },
      place,
    );
  }

  #exchange(
    id: string,
    exchange: Exchange,
    send: (transport: Transport, options: Parameters<Transport["send"]>[1]) => Promise<void>,
    place?: Session,
  ): Under {
    const answer = Promise.withResolvers<Record<string, unknown>>();
    answer.promise.catch(() => {});
    if (!this.#isOpen) {
      answer.reject(new NotSent("the connection to the server was lost"));
      return { result: answer.promise, cancel: () => {}, leave: () => {}, recorded: () => {} };
    }
    const abort = new AbortController();
    const transport = this.#ownTransport(id, place);
    const isOwn = transport === this.#transport;
    const isKept = exchange.isKept === true && transport instanceof KeptTransport;
    // A transport of its own is of no use any more; what it still holds open is closed.
    const close = () => {
      if (!isOwn) void transport.close().catch(() => {});
    };
    this.#waiting.set(id, {
      ...exchange,
      isApart: !isOwn && transport instanceof KeptTransport,
      resolve: (result) => {
        this.#waiting.delete(id);
        answer.resolve(result);
        if (!isKept) close();
      },
      reject: (error) => {
        this.#waiting.delete(id);
        answer.reject(error);
        // The answer is one all the same.
        if (!isKept || !(error instanceof RpcError)) close();
      },
    });
    let why = STREAM_ENDED;
    if (!isOwn) {
      transport.onerror = ({ message }) => {
        why = tooLong(message) ?? why;
      };
    }
    const options = {
      requestSignal: abort.signal,
      ...(exchange.onEventId && { onresumptiontoken: (token: string) => exchange.onEventId?.(token) }),
      onRequestStreamEnd: () => this.#waiting.get(id)?.reject(new Lost(why)),
    };
    const sending = async () => {
      if (!isOwn) await transport.start();
      await send(transport, options);
    };
    sending().catch((error) => this.#waiting.get(id)?.reject(classified(error)));
    return {
      result: answer.promise,
      recorded: () => {
        if (!isKept) return;
        transport.recorded(id);
        close();
      },
      leave: () => {
        if (isKept) close();
        if (!this.#waiting.has(id)) return;
        abort.abort();
        this.#waiting.get(id)?.reject(new Lost("nobody waits for it any more"));
      },
      cancel: (reason) => {
        if (!this.#waiting.has(id)) return;
        const params = { requestId: id, reason, ...(this.era === "modern" && { _meta: this.#envelope() }) };
        const told = { jsonrpc: "2.0" as const, method: "notifications/cancelled", params } as JSONRPCMessage;
        // To a server of 2026 over HTTP the end of the request says it.
        const isSaid = this.era === "modern" && transport.hasPerRequestStream === true;
        const saying = isSaid ? Promise.resolve() : transport.send(told).catch(() => {});
        void saying.then(() => {
          abort.abort();
          this.#waiting.get(id)?.reject(new Lost(`it was cancelled: ${reason}`));
        });
      },
    };
  }

  /** Over HTTP each request has a transport of its own, within one session: what comes over it belongs to that request. */
  #ownTransport(id: string, place: Session = this.place): Transport {
    const transport = transportFor(this.#target, place, this.keeper);
    if (!transport) return this.#transport;
    this.#listen(transport, id);
    if (transport instanceof KeptTransport)
      transport.onclose = () => this.#waiting.get(id)?.reject(new Lost(CONNECTION_LOST));
    return transport;
  }

  /** The session that requests belong to. */
  get place(): Session {
    const { sessionId } = this;
    return {
      ...(sessionId !== undefined && { sessionId }),
      ...(this.era === "legacy" && { protocolVersion: this.revision }),
    };
  }

  #envelope(): Record<string, unknown> {
    return this.era === "legacy" ? {} : envelopeOf(this.revision);
  }

  /** Takes what belongs to requests from what comes over a transport; the rest is the client's. */
  #listen(transport: Transport, owner?: string): void {
    const others = transport.onmessage ?? this.#transport.onmessage;
    if (transport instanceof KeptTransport) transport.onlost = (id) => this.#waiting.get(id)?.reject(new Gone(ENDED));
    transport.onmessage = (message, extra) => {
      if (!this.#take(message as Incoming, transport, owner)) others?.(message, extra);
    };
  }

  #take(message: Incoming, transport: Transport, owner: string | undefined): boolean {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      const waiting = typeof id === "string" ? this.#waiting.get(id) : undefined;
      if (!waiting) return false;
      if (message.error) waiting.reject(new RpcError(message.error.code, message.error.message));
      else waiting.resolve(message.result ?? {});
      return true;
    }
    if (id !== undefined) {
      const send = (answer: object) =>
        void transport.send({ jsonrpc: "2.0", id, ...answer } as JSONRPCMessage).catch(() => {});
      return passOn(message, { waiting: this.#waiting, owner, send, log: this.#log });
    }
    if (method === "notifications/progress") {
      const waiting = this.#waiting.get(String(params.progressToken));
      waiting?.onProgress?.(params as unknown as { progress: number });
      return waiting !== undefined;
    }
    if (method === "notifications/message") {
      const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data);
      this.#log.info("wrapped server says", { level: params.level, says: String(text).slice(0, MAX_LINE) });
      return true;
    }
    return false;
  }
}
