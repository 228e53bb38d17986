/** A request of a caller, as the methods of the server and the features see it. */
import type { Caller } from "../author/caller.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";

/** Whether a request only reads jobs, or starts, answers or stops them. */
export type Access = "read" | "write";

/** What a request costs and needs in order to be answered. */
export interface RequestCost {
  /** In requests; 1 for the request itself has already been counted. */
  weight: number;
  access: readonly Access[];
  /** Whether the answer may be a stream. */
  streams: boolean;
}

/** A refusal in words, and when to try again, in seconds; undefined if trying again does not help. */
export interface LimitReached {
  message: string;
  seconds?: number;
}

/** One open stream of a caller among those that it may have. It is renewed while the stream is alive. */
export interface StreamSlot {
  renew(): void;
  release(): void;
}

/** When a stream ends, and its place among the streams of its caller. */
export interface StreamTerms {
  /** The stream's deadline, in milliseconds since the epoch; it may come closer. 0: its caller has been blocked. */
  until: number;
  slot(): StreamSlot;
}

/** The one line that the log has of a request. */
export interface RequestLog {
  method?: string;
  tool?: string;
  /** The job that was started or found, as the worker's log names it. */
  job?: string;
  /** The caller, as its label. */
  caller?: string;
  /** The span of the request, by which jobs are started; undefined without tracing. */
  trace?: RequestTrace | undefined;
  readonly requestId: string;
  /** Delays the line until {@link release}: the response is streamed while the tool is at work. */
  delay(): void;
  release(): void;
  /** Calls a listener when the line is written. */
  onWritten(listener: (entry: RequestEntry) => void): void;
}

/** A span and the one above it, each as a `traceparent`. */
export interface RequestTrace {
  traceparent: string;
  parent: string | undefined;
}

/** What the log says of a request that has been answered. */
export interface RequestEntry {
  request_id: string;
  method: string | undefined;
  tool: string | undefined;
  job: string | undefined;
  caller: string | undefined;
  status: number;
  /** When the request arrived, in milliseconds since the epoch. */
  began: number;
}

/** What bounds a caller's request once it has been admitted. Each middleware that limits callers adds its own. */
export interface RequestBound {
  /** The response that refuses a request for its cost, which is known when its body has been read. */
  check?(cost: RequestCost): Promise<Response | undefined>;
  /** The response that refuses a request whose answer may be a stream. */
  checkStream?(scope: RequestScope): Response | undefined;
  /** Charges what the request has taken so far. Above the limit, returns the time until it is allowed again. */
  charge?(scope: RequestScope): Promise<LimitReached | undefined>;
  /** Called when the answer becomes a stream, at each keep-alive of it, and when the answer ends. */
  open?(scope: RequestScope): void;
  renew?(scope: RequestScope): void;
  release?(scope: RequestScope): void;
}

/** A request within its caller's limits, apart from its message. */
export interface RequestScope extends StreamTerms {
  caller: Caller;
  /** The jobs as this caller sees them, for this request alone. */
  store: RemoteStore;
  requestLog: RequestLog;
  /** The request as it was received, whose body may have been read. */
  readonly request: Request;
  /** The key by which the caller's limits count: its own, or else its address. */
  limitKey(): string;
  /** Identifies the session among those of all callers; undefined for a request without one, as of 2026. */
  readonly session: string | undefined;
  /** Lets work continue for up to 30 s after the client has left, when the platform would end it. */
  waitUntil(work: Promise<unknown>): void;
  /** Aborted when the client cancels a call that waits. */
  cancelled?: AbortSignal;
  /** Charges what a stream has taken so far. Above the limit, returns the time until it is allowed again. */
  charge(): Promise<LimitReached | undefined>;
  /** Checks the limits and the token's scopes; returns the response that refuses the request, if any. */
  checkLimits(cost: RequestCost): Promise<Response | undefined>;
}
