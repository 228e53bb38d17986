import type { Caller } from "../../core/author/caller.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { StreamTerms } from "./event-stream.ts";
import type { Limited } from "./rate-limit.ts";
import type { RequestLog } from "./request-log.ts";

/** Whether a request only looks at jobs, or starts, answers or stops them. */
export type Access = "read" | "write";

/** What a request needs in order to be answered. */
export interface Demand {
  /** What it costs, in requests; 1 for the request itself has already been counted. */
  weight: number;
  access: readonly Access[];
  /** Whether the answer may be a stream. */
  streams: boolean;
}

/** An admitted request, apart from its message. */
export interface RequestScope extends StreamTerms {
  caller: Caller;
  /** The jobs as this caller sees them, for this request alone. */
  store: RemoteStore;
  line: RequestLog;
  /** Identifies the client, as there are no sessions: the caller, or else the address, and the client's `User-Agent`. */
  client: string;
  /** Lets work go on for up to 30 s when the client has left, where the platform would end it. */
  waitUntil(work: Promise<unknown>): void;
  /** Aborted when the client cancels a call that waits. */
  cancelled?: AbortSignal;
  /** Whether the client's revision has resource links in results; older SDKs refuse a result that holds one. */
  links: boolean;
  /** Whether the client reads structured content, so that text need not repeat it: its address ends with `?text=once`. */
  textOnce: boolean;
  /** Charges what a stream has taken so far. Above the limit, returns the time until it is allowed again. */
  pay(): Promise<Limited | undefined>;
  /** Checks the limits and the token's scopes; returns the response that refuses the request, if any. */
  admit(demand: Demand): Promise<Response | undefined>;
}
