/** What is said of requests to a wrapped server while they are under way. */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";

/** A question as a server puts it in the middle of a call. */
export interface Asked {
  /** The id of the server's request. */
  id: string | number;
  params: Record<string, unknown>;
  /** Answers it; the result is an `ElicitResult`. */
  answer(result: Record<string, unknown>): void;
}

/** What is of interest while a request is under way. */
export interface Exchange {
  /** Whether a keeper keeps the answer until it is written down, and knows the request when it is sent again. */
  isKept?: boolean;
  onProgress?(progress: { progress: number; total?: number; message?: string }): void;
  onAsked?(asked: Asked): void;
  /** The stream of the answer can be picked up from here. */
  onEventId?(id: string): void;
  /** The task of the 2025-11-25 revision whose questions belong to it. */
  task?: string;
}

export interface Under {
  /** Rejects with {@link NotSent}, {@link CallRefused}, {@link Lost} or {@link RpcError}. */
  readonly result: Promise<Record<string, unknown>>;
  /** Tells the server that nobody waits for the answer any more. */
  cancel(reason: string): void;
  /** Nobody here waits for the answer any more; the server is not told. */
  leave(): void;
  /** The answer is written down: it need not be kept. */
  recorded(): void;
}

/** How the stream of an answer can be picked up. */
export interface Resumable {
  session: string;
  request: string;
  event: string;
  revision: string;
}

/** A session at the server; for a program, its keeper. */
export interface Session {
  sessionId?: string;
  protocolVersion?: string;
}

/** A request under way. */
export interface Waiting extends Exchange {
  /** Whether it has a transport of its own: it goes on when the connection is lost. */
  isApart: boolean;
  resolve(result: Record<string, unknown>): void;
  reject(error: Error): void;
}

/** A message as it comes. */
export type Incoming = JSONRPCMessage & {
  id?: string | number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string };
};

/** What the ids of requests begin with that go over connections as they are. */
export const OWN = "wrapped-";

/** The id of a request, which no other has. */
export const requestId = (): string => `${OWN}${crypto.randomUUID()}`;
