/** A request to a wrapped server, from its sending until its transport is not needed any more. */
import { INTERNAL_ERROR, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { AnswerLost, classify, MessageTooLong, RpcError, transportError } from "../host/errors.ts";
import { MAX_MESSAGE_BYTES, tooLongError } from "../host/host-config.ts";
import { HostedTransport } from "../host/hosted-transport.ts";
import type { OpenRequest, PendingRequest, RequestHooks } from "../host/open-request.ts";
import { isAnsweredWithout } from "./target.ts";

/** How long a server may take to end a stream after the answer, in milliseconds. Ending it here would also end the TCP connection. */
const MAX_LINGER_MS = 1_000;

/** The error of a request for which no answer will come, because the response to it has none. */
const NO_ANSWER = {
  code: INTERNAL_ERROR,
  message: "It accepted the request, and its response has no answer to it. Whether it has done anything is unknown.",
};

const STREAM_ENDED = "the server ended the connection";

type SendOptions = Parameters<Transport["send"]>[1];

/** Sends the request's message over its transport. */
export type Send = (transport: Transport, options: SendOptions) => Promise<void>;

interface SentRequestOptions {
  id: string;
  hooks: RequestHooks;
  transport: Transport;
  /** Whether the transport serves this request alone. */
  ownsTransport: boolean;
  /** The open requests of the connection, to which this one belongs until it has its answer. */
  pending: Map<string, PendingRequest>;
  /** The description of the client in each message of the 2026 revision; undefined in the 2025 revisions. */
  envelope: Record<string, unknown> | undefined;
}

export class SentRequest {
  readonly #options: SentRequestOptions;
  readonly #answer = Promise.withResolvers<Record<string, unknown>>();
  /** The transport, if it goes to a program host. */
  readonly #hostTransport: HostedTransport | undefined;
  /** Whether the program host stores the answer until it is released. */
  readonly #isRecoverable: boolean;
  /** Over HTTP, an answer in a stream arrives after this is true. */
  #isSent = false;
  #hasTooLongMessage = false;
  #linger: NodeJS.Timeout | undefined;

  constructor(options: SentRequestOptions) {
    const { id, hooks, transport, ownsTransport, pending } = options;
    this.#options = options;
    this.#hostTransport = transport instanceof HostedTransport ? transport : undefined;
    this.#isRecoverable = hooks.isRecoverable === true && this.#hostTransport !== undefined;
    this.#answer.promise.catch(() => {});
    pending.set(id, {
      ...hooks,
      outlivesConnection: ownsTransport && this.#hostTransport !== undefined,
      resolve: (result) => this.#resolve(result),
      reject: (error) => this.#reject(error),
    });
    if (ownsTransport) {
      transport.onerror = (error) => {
        if (transportError(error) instanceof MessageTooLong) this.#hasTooLongMessage = true;
      };
    }
  }

  /** Sends the request. Its outcome, a failure to send it as well, is in the result of the returned request. */
  send(send: Send): OpenRequest {
    const { transport, ownsTransport, hooks } = this.#options;
    const options = {
      ...(hooks.onEventId && { onresumptiontoken: (token: string) => hooks.onEventId?.(token) }),
      onRequestStreamEnd: () => {
        clearTimeout(this.#linger);
        this.#fail(this.#hasTooLongMessage ? tooLong() : new AnswerLost(STREAM_ENDED));
      },
    };
    const sending = async () => {
      if (ownsTransport) await transport.start();
      await send(transport, options);
      this.#isSent = true;
      if (isAnsweredWithout(transport)) this.#fail(new RpcError(NO_ANSWER));
    };
    sending().catch((error) => {
      this.#fail(transportError(error) instanceof MessageTooLong ? tooLong() : classify(error, this.#options.id));
    });
    return {
      result: this.#answer.promise,
      release: () => this.#release(),
      leave: () => this.#leave(),
      cancel: (reason) => this.#cancel(reason),
    };
  }

  #resolve(result: Record<string, unknown>): void {
    this.#options.pending.delete(this.#options.id);
    this.#answer.resolve(result);
    const { ownsTransport } = this.#options;
    if (this.#hostTransport) {
      if (!this.#isRecoverable) this.#close();
    } else if (ownsTransport && this.#isSent) {
      this.#linger = setTimeout(() => this.#close(), MAX_LINGER_MS).unref();
    }
  }

  #reject(error: Error): void {
    this.#options.pending.delete(this.#options.id);
    this.#answer.reject(error);
    // A protocol error is an answer, too, and is to be recorded.
    if (!this.#isRecoverable || !(error instanceof RpcError)) this.#close();
  }

  /** Ends the request with an error, if it has no answer yet. */
  #fail(error: Error): void {
    this.#options.pending.get(this.#options.id)?.reject(error);
  }

  #close(): void {
    const { transport, ownsTransport } = this.#options;
    if (ownsTransport) void transport.close().catch(() => {});
  }

  #release(): void {
    if (!this.#isRecoverable) return;
    this.#hostTransport?.release(this.#options.id);
    this.#close();
  }

  #leave(): void {
    if (this.#isRecoverable) this.#close();
    this.#fail(new AnswerLost("nobody waits for it any more"));
  }

  #cancel(reason: string): void {
    const { id, pending, transport, envelope } = this.#options;
    if (!pending.has(id)) return;
    const params = { requestId: id, reason, ...(envelope && { _meta: envelope }) };
    const message = { jsonrpc: "2.0" as const, method: "notifications/cancelled", params } as JSONRPCMessage;
    // Over HTTP, a server of the 2026 revision treats the end of the request as its cancellation.
    const isImplied = envelope !== undefined && transport.hasPerRequestStream === true;
    const notification = isImplied ? Promise.resolve() : transport.send(message).catch(() => {});
    void notification.then(() => this.#fail(new AnswerLost(`it was cancelled: ${reason}`)));
  }
}

/** The error of a request whose answer was dropped. */
const tooLong = () => new RpcError(tooLongError(MAX_MESSAGE_BYTES));
