/**
 * One connection to a wrapped server. The SDK's client opens and keeps it, and reports changes of lists. Requests bypass that client
 * and go over its transport message by message: it would drop fields that it does not know and refuse a result for one odd field, and
 * it cannot continue a call, or the stream of its answer, that another process has sent.
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
import type { Log } from "../../../core/author/index.ts";
import { rounded, within } from "../../../core/resonate/index.ts";
import { PROTOCOL_REVISION, paramHeaders } from "../../../core/tools/index.ts";
import type { ListedTool } from "../../snapshot.ts";
import { LOG_LEVELS } from "../../upstream/logs.ts";
import {
  AnswerLost,
  AnswerTooDeep,
  MessageTooLong,
  NotSent,
  OutcomeUnknown,
  RpcError,
  transportError,
} from "../host/errors.ts";
import { MAX_MESSAGE_BYTES, TOO_DEEP } from "../host/host-config.ts";
import { HostedTransport } from "../host/hosted-transport.ts";
import { restoreIntegers } from "../host/marked-integers.ts";
import {
  type IncomingMessage,
  type OpenRequest,
  type PendingRequest,
  type RequestHooks,
  type ResumableStream,
  requestId,
  type Session,
} from "../host/open-request.ts";
import { cutDepths, isTooDeep } from "../protocol-values.ts";
import { clientOf, envelopeOf } from "./client.ts";
import { ProgramFailed } from "./open-failure.ts";
import { refreshedRequest } from "./refreshed-request.ts";
import { type Send, SentRequest } from "./sent-request.ts";
import { handleRequest } from "./server-requests.ts";
import { limitLog, logLines, MAX_LINE_CHARACTERS, type Target, transportFor, transportOf } from "./target.ts";
import { type Subscription, Updates } from "./updates.ts";

const CONNECTION_LOST = "the connection to the server was lost";
const CONNECTION_ENDED = `the connection was ended, because it sent more than ${MAX_MESSAGE_BYTES} bytes in one message`;
const PROGRAM_ENDED = "the program that it was sent to has ended";

/** How long a server may take to confirm a level of log messages, or the end of a subscription, in milliseconds. */
const CONFIRM_TIMEOUT_MS = 5_000;

/** How long a server may take to accept the answer to its request, in milliseconds. */
const ACCEPT_TIMEOUT_MS = 30_000;

interface ConnectionOptions {
  target: Target;
  log: Log;
  /** The revision that an earlier connection negotiated; knowing it saves a second start of the program. */
  revision: string | undefined;
  /** Resolves when the lists have been read again. */
  onListsChanged(): Promise<void>;
  /** The revision to speak. Default: the newest that the server has. */
  fixedRevision: string | undefined;
  /** How long the server may take to answer, in milliseconds. */
  timeout: number;
}

export class Connection {
  readonly client: Client;
  readonly #target: Target;
  readonly #log: Log;
  readonly #refreshLists: () => Promise<void>;
  readonly #transport: Transport;
  readonly #pending = new Map<string, PendingRequest>();
  isOpen = true;
  /** The server's tools, as last listed. */
  tools: readonly ListedTool[] = [];
  /** The changes of resources that jobs wait for. */
  readonly updates: Updates;
  /** The lowest level of log messages that was requested from the server. */
  #logLevel: string | undefined;
  /** Resolves when the connection is closed. */
  readonly end: Promise<void>;

  private constructor(
    client: Client,
    transport: Transport,
    target: Target,
    log: Log,
    refreshLists: () => Promise<void>,
  ) {
    this.client = client;
    this.#refreshLists = refreshLists;
    this.#transport = transport;
    this.#target = target;
    this.#log = log;
    this.updates = new Updates((uri) => this.#subscribe(uri));
    const end = Promise.withResolvers<void>();
    this.end = end.promise;
    let why = CONNECTION_LOST;
    client.onclose = () => {
      this.isOpen = false;
      for (const { reject, outlivesConnection } of [...this.#pending.values()]) {
        if (!outlivesConnection) reject(new AnswerLost(why));
      }
      this.updates.close(new AnswerLost(why));
      end.resolve();
    };
    client.onerror = (error) => {
      if (transportError(error) instanceof MessageTooLong) why = CONNECTION_ENDED;
      log.debug("wrapped server", { reason: error.message });
    };
  }

  /** @throws {Error} saying why the server cannot be reached */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const transport = await transportOf(options.target);
    const isHosted = transport instanceof HostedTransport;
    const { revision, fixedRevision } = options;
    const isLegacy =
      (fixedRevision ?? revision ?? PROTOCOL_REVISION) < PROTOCOL_REVISION || (isHosted && transport.isOpen);
    try {
      return await Connection.#open(
        transport,
        isLegacy ? "legacy" : fixedRevision === undefined ? "auto" : { pin: fixedRevision },
        options,
      );
    } catch (error) {
      // A program of the 2025 revisions may exit when the client offers the newer one.
      if (!isHosted || isLegacy || fixedRevision !== undefined || !transport.hasEnded) throw error;
      return Connection.#open(await transportOf(options.target), "legacy", options);
    }
  }

  static async #open(
    transport: Transport,
    mode: VersionNegotiationMode,
    { target, log: fullLog, onListsChanged, timeout, fixedRevision }: ConnectionOptions,
  ): Promise<Connection> {
    const log = limitLog(fullLog);
    const client = clientOf(mode, fixedRevision, timeout, () => void onListsChanged());
    const { stderr = null } = transport as { stderr?: Readable | null };
    const connection = new Connection(client, transport, target, log, onListsChanged);
    const lastLine = logLines(stderr, log);
    try {
      await client.connect(transport, { timeout });
    } catch (error) {
      await client.close().catch(() => {});
      await transport.close().catch(() => {});
      const line = lastLine();
      throw line === "" ? error : new ProgramFailed(error as Error, line);
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
    if (method !== "tools/call" || this.era === "legacy" || !("url" in this.#target)) {
      return this.#request(method, params, hooks);
    }
    // Headers repeat the arguments for which the tool's schema says so.
    const send = () => {
      const { inputSchema } = this.tools.find(({ name }) => name === params.name) ?? {};
      return this.#request(method, params, hooks, paramHeaders(inputSchema, params.arguments));
    };
    return refreshedRequest(send, this.#refreshLists);
  }

  /** `headers`: of the HTTP request, besides those that every request has. */
  #request(
    method: string,
    params: Record<string, unknown>,
    hooks: RequestHooks,
    headers?: Record<string, string>,
  ): OpenRequest {
    const { isRecoverable, id = requestId(), session } = hooks;
    const ownMeta = params._meta as Record<string, unknown> | undefined;
    const _meta = { ...ownMeta, ...this.#envelope(), ...(hooks.onProgress && { progressToken: id }) };
    // MCP carries the trace in `_meta`, so that it continues in the server over every transport.
    propagation.inject(context.active(), _meta);
    const fullParams = { ...params, ...(Object.keys(_meta).length > 0 && { _meta }) };
    const message = { jsonrpc: "2.0" as const, id, method, params: fullParams } as JSONRPCMessage;
    const send: Send = (transport, options) =>
      isRecoverable && transport instanceof HostedTransport
        ? transport.sendRecoverable(message)
        : transport.send(message, { ...options, ...(headers && { headers }) });
    return this.#send(id, hooks, send, session);
  }

  /** Requests log messages of at least this level from a server of the 2025 revisions. */
  async requestLogs(level: string): Promise<void> {
    const isEnough = this.#logLevel !== undefined && LOG_LEVELS.indexOf(this.#logLevel) <= LOG_LEVELS.indexOf(level);
    if (this.era === "modern" || isEnough || !this.client.getServerCapabilities()?.logging) return;
    this.#logLevel = level;
    await this.#notify("logging/setLevel", { level });
  }

  /** Sends a request whose outcome does not matter. */
  async #notify(method: string, params: Record<string, unknown>): Promise<void> {
    const { result, leave } = this.request(method, params);
    await within(result, CONFIRM_TIMEOUT_MS).catch(() => {});
    leave();
  }

  #subscribe(uri: string): Subscription {
    if (this.era === "legacy") {
      const { result, leave } = this.request("resources/subscribe", { uri });
      const end = () => {
        leave();
        void this.#notify("resources/unsubscribe", { uri });
      };
      return { confirmation: result, end };
    }
    const confirmation = Promise.withResolvers<void>();
    const params = { notifications: { resourceSubscriptions: [uri] } };
    const subscription = this.request("subscriptions/listen", params, { onAcknowledged: () => confirmation.resolve() });
    const fail = (why: Error) => this.updates.fail(uri, why);
    subscription.result.then(() => fail(new AnswerLost("the server has ended the subscription")), fail);
    return { confirmation: confirmation.promise, end: () => subscription.cancel("nobody waits for its changes") };
  }

  /**
   * Answers a request of the server that arrived in another process, in the session in which it arrived.
   *
   * @throws {AnswerLost} if the server does not accept the answer in time
   */
  async respond(session: Session, id: string | number, result: Record<string, unknown>): Promise<void> {
    const transport = this.#transportFor(`${id}`, session);
    const ownsTransport = transport !== this.#transport;
    const sending = async () => {
      if (ownsTransport) await transport.start();
      await transport.send({ jsonrpc: "2.0", id, result } as JSONRPCMessage);
      return true;
    };
    try {
      if (!(await within(sending(), ACCEPT_TIMEOUT_MS)))
        throw new AnswerLost("the server has not accepted an answer in time");
    } finally {
      if (ownsTransport) await transport.close();
    }
  }

  /** Resumes the stream of an answer to a request that another process has sent. */
  resume({ request, event, session, revision }: ResumableStream, hooks: RequestHooks): OpenRequest {
    return this.#send(
      request,
      hooks,
      (transport) => {
        transport.onerror = (error) => {
          const failure = transportError(error);
          if (failure instanceof AnswerLost) this.#pending.get(request)?.reject(failure);
        };
        const onresumptiontoken = (token: string) => hooks.onEventId?.(token);
        return (transport as StreamableHTTPClientTransport).resumeStream(event, { onresumptiontoken });
      },
      { sessionId: session, protocolVersion: revision },
    );
  }

  #send(id: string, hooks: RequestHooks, send: Send, session?: Session): OpenRequest {
    if (!this.isOpen) {
      const result = Promise.reject(new NotSent(CONNECTION_LOST));
      result.catch(() => {});
      return { result, cancel: () => {}, leave: () => {}, release: () => {} };
    }
    const transport = this.#transportFor(id, session);
    const ownsTransport = transport !== this.#transport;
    const pending = this.#pending;
    return new SentRequest({ id, hooks, transport, ownsTransport, pending, envelope: this.#envelope() }).send(send);
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

  #envelope(): Record<string, unknown> | undefined {
    return this.era === "legacy" ? undefined : envelopeOf(this.revision);
  }

  /** Handles the messages that belong to requests; the SDK's client gets the others. */
  #listen(transport: Transport, owner?: string): void {
    const others = transport.onmessage ?? this.#transport.onmessage;
    if (transport instanceof HostedTransport)
      transport.onAnswerLost = (id) => this.#pending.get(id)?.reject(new OutcomeUnknown(PROGRAM_ENDED));
    transport.onmessage = (received, extra) => {
      const { isCut } = this.#pending.get(String((received as IncomingMessage).id ?? owner)) ?? {};
      const message = isCut ? (cutDepths(received) as typeof received) : received;
      if (isTooDeep(message)) return this.#refuseDeep(message as IncomingMessage, transport, owner);
      const exact = restoreIntegers(message) as IncomingMessage;
      // What a client gets is exact; all else is for code that knows no such integers.
      const isForClient = exact.method === undefined || exact.method === "notifications/message";
      if (!this.#handle(isForClient ? exact : rounded(exact), transport, owner)) others?.(rounded(message), extra);
    };
  }

  /** Answers in place of a message that is nested too deep: code that recurses never meets it. */
  #refuseDeep({ id, method }: IncomingMessage, transport: Transport, owner: string | undefined): void {
    if (method === undefined) this.#pending.get(String(id ?? owner))?.reject(new AnswerTooDeep());
    else if (id !== undefined) void transport.send({ jsonrpc: "2.0", id, error: TOO_DEEP }).catch(() => {});
  }

  #handle(message: IncomingMessage, transport: Transport, owner: string | undefined): boolean {
    const { id, method, params = {} } = message;
    if (method === undefined) return this.#handleResponse(message, owner);
    if (id === undefined) return this.#handleNotification(method, params, owner);
    const send = (answer: object) =>
      void transport.send({ jsonrpc: "2.0", id, ...answer } as JSONRPCMessage).catch(() => {});
    return handleRequest(message, { pending: this.#pending, owner, send, log: this.#log });
  }

  #handleResponse({ id, error, result }: IncomingMessage, owner: string | undefined): boolean {
    const pending = this.#pending.get(String(id ?? (error ? (owner ?? this.#onlyRequest()) : "")));
    if (error) pending?.reject(new RpcError(error));
    else pending?.resolve(result ?? {});
    return pending !== undefined;
  }

  /** The request to which an error without an id belongs, as from a program that cannot read the id. */
  #onlyRequest(): string | undefined {
    const [id, ...others] = this.#pending.keys();
    return others.length === 0 ? id : undefined;
  }

  #handleNotification(method: string, params: Record<string, unknown>, owner: string | undefined): boolean {
    if (method === "notifications/progress") {
      const pending = this.#pending.get(String(params.progressToken));
      pending?.onProgress?.(params);
      return pending !== undefined;
    }
    if (method === "notifications/subscriptions/acknowledged") {
      const { [SUBSCRIPTION_ID_META_KEY]: requestId } = { ...(params._meta as Record<string, unknown> | undefined) };
      const pending = this.#pending.get(String(requestId));
      pending?.onAcknowledged?.();
      return pending?.onAcknowledged !== undefined;
    }
    if (method === "notifications/resources/updated") {
      this.updates.onChange(String(params.uri));
      return true;
    }
    if (method === "notifications/message") {
      // Over stdio nothing says which call a message belongs to.
      const calls = [...this.#pending].filter(([id, { onLog }]) => onLog && (owner === undefined || id === owner));
      if (calls.length === 1) calls[0]?.[1].onLog?.(params);
      const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data);
      this.#log.info("wrapped server says", { level: params.level, says: String(text).slice(0, MAX_LINE_CHARACTERS) });
      return true;
    }
    return false;
  }
}
