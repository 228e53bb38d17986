/**
 * One connection to a wrapped server. The SDK's client opens and keeps it. Calls bypass that client and go over its transport
 * message by message, so that fields unknown to the SDK reach the caller, and questions and tasks are recognized.
 */
import type { Readable } from "node:stream";
import {
  type Client,
  type JSONRPCMessage,
  LATEST_PROTOCOL_VERSION,
  type StreamableHTTPClientTransport,
  SUBSCRIPTION_ID_META_KEY,
  type Transport,
  type VersionNegotiationMode,
} from "@modelcontextprotocol/client";
import { context, propagation } from "@opentelemetry/api";
import type { Log } from "../../../core/author/context.ts";
import { within } from "../../../core/resonate/pacing/backoff.ts";
import { REVISION } from "../../../core/tools/mcp.ts";
import { LEVELS } from "../../behind/logs.ts";
import type { ListedTool } from "../../snapshot.ts";
import { MAX_MESSAGE, tooLong } from "../host/host-config.ts";
import { HostedTransport } from "../host/hosted-transport.ts";
import { clientOf, envelopeOf } from "./client.ts";
import { AnswerLost, classified, isTooLong, NotSent, OpenFailed, OutcomeUnknown, RpcError } from "./errors.ts";
import {
  type IncomingMessage,
  type OpenRequest,
  type PendingRequest,
  type RequestHooks,
  type ResumableStream,
  requestId,
  type Session,
} from "./open-request.ts";
import { passOn } from "./server-requests.ts";
import { limited, logLines, MAX_LINE, type Target, transportFor, transportOf } from "./target.ts";
import { type Subscription, Updates } from "./updates.ts";

const CONNECTION_LOST = "the connection to the server was lost";
const CONNECTION_ENDED = `the connection was ended, because it sent more than ${MAX_MESSAGE} bytes in one message`;
const STREAM_ENDED = "the server ended the connection";
const ENDED = "the program that it was sent to has ended";

/** How long a server may take to end a stream after the answer, in milliseconds. Ending it here would also end the TCP connection. */
const LINGER = 1_000;

/** How long a server may take to confirm a level of log messages, or the end of a subscription, in milliseconds. */
const CONFIRM = 5_000;

/** How long a server may take to accept the answer to its request, in milliseconds. */
const ACCEPT = 30_000;

interface ConnectionOptions {
  target: Target;
  log: Log;
  /** The revision that an earlier connection negotiated; knowing it saves a second start of the program. */
  revision: string | undefined;
  onListsChanged(): void;
  /** The revision to speak. Default: the newest that the server has. */
  asked: string | undefined;
  /** How long the server may take to answer, in milliseconds. */
  timeout: number;
}

export class Connection {
  readonly client: Client;
  readonly #target: Target;
  readonly #log: Log;
  readonly #transport: Transport;
  readonly #pending = new Map<string, PendingRequest>();
  isOpen = true;
  /** The server's tools, as last listed. */
  tools: readonly ListedTool[] = [];
  /** The changes of resources that jobs wait for. */
  readonly updates: Updates;
  /** The lowest level of log messages that the server was asked for. */
  #logLevel: string | undefined;
  readonly closed: Promise<void>;

  private constructor(client: Client, transport: Transport, target: Target, log: Log) {
    this.client = client;
    this.#transport = transport;
    this.#target = target;
    this.#log = log;
    this.updates = new Updates((uri) => this.#subscribe(uri));
    const closed = Promise.withResolvers<void>();
    this.closed = closed.promise;
    let why = CONNECTION_LOST;
    client.onclose = () => {
      this.isOpen = false;
      for (const { reject, isApart } of [...this.#pending.values()]) if (!isApart) reject(new AnswerLost(why));
      this.updates.close(new AnswerLost(why));
      closed.resolve();
    };
    client.onerror = ({ message }) => {
      if (isTooLong(message)) why = CONNECTION_ENDED;
      log.debug("wrapped server", { reason: message });
    };
  }

  /** @throws {Error} saying why the server cannot be reached */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const transport = await transportOf(options.target);
    const isHosted = transport instanceof HostedTransport;
    const { revision, asked } = options;
    const isLegacy = (asked ?? revision ?? REVISION) < REVISION || (isHosted && transport.isOpen);
    try {
      return await Connection.#open(
        transport,
        isLegacy ? "legacy" : asked === undefined ? "auto" : { pin: asked },
        options,
      );
    } catch (error) {
      // A program of the 2025 revisions may exit when the client offers the newer one.
      if (!isHosted || isLegacy || asked !== undefined || !transport.hasEnded) throw error;
      return Connection.#open(await transportOf(options.target), "legacy", options);
    }
  }

  static async #open(
    transport: Transport,
    mode: VersionNegotiationMode,
    { target, log: whole, onListsChanged, timeout, asked }: ConnectionOptions,
  ): Promise<Connection> {
    const log = limited(whole);
    const client = clientOf(mode, asked, timeout, onListsChanged);
    const { stderr = null } = transport as { stderr?: Readable | null };
    const connection = new Connection(client, transport, target, log);
    const lastLine = logLines(stderr, log);
    try {
      await client.connect(transport, { timeout });
    } catch (error) {
      await client.close().catch(() => {});
      await transport.close().catch(() => {});
      // A program that does not start usually says why on stderr.
      const said = lastLine();
      if (said === "") throw error;
      throw new OpenFailed(error as Error, said);
    }
    connection.#listen(transport);
    return connection;
  }

  get isIdle(): boolean {
    return this.#pending.size === 0;
  }

  get era(): "modern" | "legacy" {
    return this.client.getProtocolEra() === "modern" ? "modern" : "legacy";
  }

  get revision(): string {
    return this.client.getNegotiatedProtocolVersion() ?? LATEST_PROTOCOL_VERSION;
  }

  /** The program host, if the program outlives its worker. */
  get host(): string | undefined {
    return this.#transport instanceof HostedTransport ? this.#transport.host : undefined;
  }

  /** The session that requests belong to. */
  get session(): Session {
    const sessionId = this.host ?? this.#transport.sessionId;
    return {
      ...(sessionId !== undefined && { sessionId }),
      ...(this.era === "legacy" && { protocolVersion: this.revision }),
    };
  }

  /** Leaves a hosted program, with its session, to the next worker; false if the program ends with this process. */
  leave(): boolean {
    if (!(this.#transport instanceof HostedTransport)) return false;
    this.#transport.leave();
    return true;
  }

  close(): Promise<void> {
    return this.client.close();
  }

  request(method: string, params: Record<string, unknown>, hooks: RequestHooks = {}): OpenRequest {
    const { isKept, id = requestId(), session } = hooks;
    const given = params._meta as Record<string, unknown> | undefined;
    const _meta = { ...given, ...this.#envelope(), ...(hooks.onProgress && { progressToken: id }) };
    // MCP carries the trace in `_meta`, so that it continues in the server over every transport.
    propagation.inject(context.active(), _meta);
    const whole = { ...params, ...(Object.keys(_meta).length > 0 && { _meta }) };
    const message = { jsonrpc: "2.0" as const, id, method, params: whole } as JSONRPCMessage;
    const send = (transport: Transport, options: Parameters<Transport["send"]>[1]) =>
      isKept && transport instanceof HostedTransport ? transport.sendKept(message) : transport.send(message, options);
    return this.#send(id, hooks, send, session);
  }

  /** Requests log messages of at least this level from a server of the 2025 revisions. */
  async logFrom(level: string): Promise<void> {
    const isEnough = this.#logLevel !== undefined && LEVELS.indexOf(this.#logLevel) <= LEVELS.indexOf(level);
    if (this.era === "modern" || isEnough || !this.client.getServerCapabilities()?.logging) return;
    this.#logLevel = level;
    await this.#tell("logging/setLevel", { level });
  }

  /** Sends a request whose outcome does not matter. */
  async #tell(method: string, params: Record<string, unknown>): Promise<void> {
    const { result, leave } = this.request(method, params);
    await within(result, CONFIRM).catch(() => {});
    leave();
  }

  #subscribe(uri: string): Subscription {
    if (this.era === "legacy") {
      const { result, leave } = this.request("resources/subscribe", { uri });
      const end = () => {
        leave();
        void this.#tell("resources/unsubscribe", { uri });
      };
      return { begun: result, end };
    }
    const begun = Promise.withResolvers<void>();
    const params = { notifications: { resourceSubscriptions: [uri] } };
    const open = this.request("subscriptions/listen", params, { onAcknowledged: () => begun.resolve() });
    const end = (why: Error) => this.updates.fail(uri, why);
    open.result.then(() => end(new AnswerLost("the server has ended the subscription")), end);
    return { begun: begun.promise, end: () => open.cancel("nobody waits for its changes") };
  }

  /**
   * Answers a request of the server that arrived in another process, in the session in which it arrived.
   *
   * @throws {AnswerLost} if the server does not accept the answer in time
   */
  async respond(session: Session, id: string | number, result: Record<string, unknown>): Promise<void> {
    const transport = this.#transportFor(`${id}`, session);
    const isApart = transport !== this.#transport;
    const sending = async () => {
      if (isApart) await transport.start();
      await transport.send({ jsonrpc: "2.0", id, result } as JSONRPCMessage);
      return true;
    };
    try {
      if (!(await within(sending(), ACCEPT))) throw new AnswerLost("the server has not accepted an answer in time");
    } finally {
      if (isApart) await transport.close();
    }
  }

  /** Resumes the stream of an answer to a request that another process has sent. */
  resume({ request, event, session, revision }: ResumableStream, hooks: RequestHooks): OpenRequest {
    return this.#send(
      request,
      hooks,
      (transport) => {
        transport.onerror = ({ message }) => {
          // The SDK has no class for it.
          if (/^Maximum reconnection/.test(message)) this.#pending.get(request)?.reject(new AnswerLost(message));
        };
        const onresumptiontoken = (token: string) => hooks.onEventId?.(token);
        return (transport as StreamableHTTPClientTransport).resumeStream(event, { onresumptiontoken });
      },
      { sessionId: session, protocolVersion: revision },
    );
  }

  #send(
    id: string,
    hooks: RequestHooks,
    send: (transport: Transport, options: Parameters<Transport["send"]>[1]) => Promise<void>,
    session?: Session,
  ): OpenRequest {
    const answer = Promise.withResolvers<Record<string, unknown>>();
    answer.promise.catch(() => {});
    if (!this.isOpen) {
      answer.reject(new NotSent(CONNECTION_LOST));
      return { result: answer.promise, cancel: () => {}, leave: () => {}, recorded: () => {} };
    }
    const transport = this.#transportFor(id, session);
    const isApart = transport !== this.#transport;
    const isHosted = transport instanceof HostedTransport;
    const isKept = hooks.isKept === true && isHosted;
    const close = () => {
      if (isApart) void transport.close().catch(() => {});
    };
    /** Over HTTP, an answer in a stream arrives after this is true. */
    let isSent = false;
    let closing: NodeJS.Timeout | undefined;
    this.#pending.set(id, {
      ...hooks,
      isApart: isApart && isHosted,
      resolve: (result) => {
        this.#pending.delete(id);
        answer.resolve(result);
        if (isHosted && !isKept) close();
        else if (isApart && !isHosted && isSent) closing = setTimeout(close, LINGER).unref();
      },
      reject: (error) => {
        this.#pending.delete(id);
        answer.reject(error);
        // A protocol error is an answer, too, and is to be recorded.
        if (!isKept || !(error instanceof RpcError)) close();
      },
    });
    let isDropped = false;
    const dropped = () => new RpcError(tooLong(MAX_MESSAGE));
    if (isApart) {
      transport.onerror = ({ message }) => {
        if (isTooLong(message)) isDropped = true;
      };
    }
    const options = {
      ...(hooks.onEventId && { onresumptiontoken: (token: string) => hooks.onEventId?.(token) }),
      onRequestStreamEnd: () => {
        clearTimeout(closing);
        this.#pending.get(id)?.reject(isDropped ? dropped() : new AnswerLost(STREAM_ENDED));
      },
    };
    const sending = async () => {
      if (isApart) await transport.start();
      await send(transport, options);
      isSent = true;
    };
    sending().catch((error) => {
      this.#pending.get(id)?.reject(isTooLong(String(error?.message)) ? dropped() : classified(error));
    });
    return {
      result: answer.promise,
      recorded: () => {
        if (!isKept) return;
        transport.recorded(id);
        close();
      },
      leave: () => {
        if (isKept) close();
        this.#pending.get(id)?.reject(new AnswerLost("nobody waits for it any more"));
      },
      cancel: (reason) => {
        if (!this.#pending.has(id)) return;
        const params = { requestId: id, reason, ...(this.era === "modern" && { _meta: this.#envelope() }) };
        const message = { jsonrpc: "2.0" as const, method: "notifications/cancelled", params } as JSONRPCMessage;
        // Over HTTP, a server of the 2026 revision treats the end of the request as its cancellation.
        const isImplied = this.era === "modern" && transport.hasPerRequestStream === true;
        const sent = isImplied ? Promise.resolve() : transport.send(message).catch(() => {});
        void sent.then(() => this.#pending.get(id)?.reject(new AnswerLost(`it was cancelled: ${reason}`)));
      },
    };
  }

  /** Over HTTP each request gets its own transport within the session, so all messages on it belong to that request. */
  #transportFor(id: string, session = this.session): Transport {
    const transport = transportFor(this.#target, session, this.host);
    if (!transport) return this.#transport;
    this.#listen(transport, id);
    if (transport instanceof HostedTransport)
      transport.onclose = () => this.#pending.get(id)?.reject(new AnswerLost(CONNECTION_LOST));
    return transport;
  }

  #envelope(): Record<string, unknown> {
    return this.era === "legacy" ? {} : envelopeOf(this.revision);
  }

  /** Handles the messages that belong to requests; the SDK's client gets the others. */
  #listen(transport: Transport, owner?: string): void {
    const others = transport.onmessage ?? this.#transport.onmessage;
    if (transport instanceof HostedTransport)
      transport.onlost = (id) => this.#pending.get(id)?.reject(new OutcomeUnknown(ENDED));
    transport.onmessage = (message, extra) => {
      if (!this.#handle(message as IncomingMessage, transport, owner)) others?.(message, extra);
    };
  }

  #handle(message: IncomingMessage, transport: Transport, owner: string | undefined): boolean {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      const pending = typeof id === "string" ? this.#pending.get(id) : undefined;
      if (!pending) return false;
      if (message.error) pending.reject(new RpcError(message.error));
      else pending.resolve(message.result ?? {});
      return true;
    }
    if (id !== undefined) {
      const send = (answer: object) =>
        void transport.send({ jsonrpc: "2.0", id, ...answer } as JSONRPCMessage).catch(() => {});
      return passOn(message, { pending: this.#pending, owner, send, log: this.#log });
    }
    if (method === "notifications/progress") {
      const pending = this.#pending.get(String(params.progressToken));
      pending?.onProgress?.(params);
      return pending !== undefined;
    }
    if (method === "notifications/subscriptions/acknowledged") {
      const { [SUBSCRIPTION_ID_META_KEY]: listening } = { ...(params._meta as Record<string, unknown> | undefined) };
      const pending = this.#pending.get(String(listening));
      pending?.onAcknowledged?.();
      return pending?.onAcknowledged !== undefined;
    }
    if (method === "notifications/resources/updated") {
      this.updates.heard(String(params.uri));
      return true;
    }
    if (method === "notifications/message") {
      // Over stdio nothing says which call a message belongs to.
      const calls = [...this.#pending].filter(([id, { onLog }]) => onLog && (owner === undefined || id === owner));
      if (calls.length === 1) calls[0]?.[1].onLog?.(params);
      const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data);
      this.#log.info("wrapped server says", { level: params.level, says: String(text).slice(0, MAX_LINE) });
      return true;
    }
    return false;
  }
}
