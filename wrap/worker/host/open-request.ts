/** Requests to a wrapped server while they are open. */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";

/** A value as it arrives from a wrapped server. */
export type JsonObject = Record<string, unknown>;

/** A question that a server asks during a call. */
export interface ServerQuestion {
  /** The id of the server's request. */
  id: string | number;
  params: Record<string, unknown>;
  /** Answers it; the result is an `ElicitResult`. */
  answer(result: Record<string, unknown>): void;
}

/** How the request is sent, and what its sender learns before the answer. */
export interface RequestHooks {
  /** Whether the program host stores the answer until it is released, and recognizes the request when it is sent again. */
  isRecoverable?: boolean;
  /** Whether an answer that is nested too deep is cut there, rather than refused. */
  isCut?: boolean;
  /** Its unique id. Default: a new one. */
  id?: string;
  /** Its session, if that is not the connection's present one. */
  session?: Session;
  /** Gets the parameters of the server's progress notifications. */
  onProgress?(progress: Record<string, unknown>): void;
  /** Gets the parameters of the server's log messages. */
  onLog?(message: Record<string, unknown>): void;
  /** Called when the server has started the subscription that the request asks for. */
  onAcknowledged?(): void;
  /** Called with each question that the server asks. */
  onQuestion?(question: ServerQuestion): void;
  /** Whether the call has an unanswered question. */
  isAsking?(): boolean;
  /** The key of the call's caller; empty if callers are not authenticated. */
  caller?: string;
  /** Called with the id of an event after which the stream of the answer can be resumed. */
  onEventId?(id: string): void;
  /** The task of the 2025-11-25 revision that the request's questions name. */
  task?: string;
}

export interface OpenRequest {
  /** Rejects with {@link NotSent}, {@link CallRefused}, {@link AnswerLost}, {@link OutcomeUnknown} or {@link RpcError}. */
  readonly result: Promise<Record<string, unknown>>;
  /** Notifies the server that nobody waits for the answer any more. */
  cancel(reason: string): void;
  /** Stops waiting here; the server is not notified. */
  leave(): void;
  /** Notifies the program host that the answer is recorded and need not be stored. */
  release(): void;
}

/** Where the stream of an answer can be resumed. A job's steps store it. */
export interface ResumableStream {
  session: string;
  request: string;
  event: string;
  revision: string;
}

/** A session at the server; for a hosted program, `sessionId` names its host. A job's steps store it. */
export interface Session {
  sessionId?: string;
  protocolVersion?: string;
}

export interface PendingRequest extends RequestHooks {
  /** Whether the request has a transport of its own to a program host, and outlives the connection. */
  outlivesConnection: boolean;
  resolve(result: Record<string, unknown>): void;
  reject(error: Error): void;
}

/** A message as received: a request, a notification or a response. */
export type IncomingMessage = JSONRPCMessage & {
  id?: string | number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: unknown;
};

/** The prefix of request ids that transports must not rewrite. */
export const ID_PREFIX = "wrapped-";

export const requestId = (): string => `${ID_PREFIX}${crypto.randomUUID()}`;
