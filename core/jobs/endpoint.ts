import type { Channel } from "../store/connection/connections.ts";
import type { StoreEndpoint } from "../store/connection/endpoint.ts";
import type { PromiseRecord } from "../store/connection/protocol.ts";
import type { DurablePromise } from "./durable-promise.ts";

/** Tells that a job's promise, or a child of it, has settled. */
export interface Settlement {
  name: string;
  isChild: boolean;
  /** Undefined for a child, and for a promise that is too large to be pushed. */
  promise: DurablePromise | undefined;
}

export interface SettlementChannel extends Channel {
  /** Begins to tell of these promises as well. */
  add(ids: readonly string[]): Promise<void>;
}

/** Pushes the promises of jobs and their children as they settle. */
export interface SettlementSource {
  /**
   * Begins to tell of the promises with these ids, for the caller with this key, until `signal` aborts.
   *
   * @throws {ResonateUnavailable} when there is no connection
   */
  open(options: {
    ids: readonly string[];
    caller: string;
    onNews(news: { id: string; promise?: PromiseRecord }): void;
    signal: AbortSignal;
  }): Promise<SettlementChannel>;
}

/** Where a deployment's jobs are, and what helps to look after them. */
export interface JobsEndpoint extends StoreEndpoint {
  /** Without it promises are read with pauses. */
  settlements?: SettlementSource | undefined;
}
