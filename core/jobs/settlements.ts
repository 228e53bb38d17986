import type { Channel } from "../resonate/connection/connections.ts";
import type { StoreEndpoint } from "../resonate/connection/endpoint.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { DurablePromise } from "./durable-promise.ts";

/** The news that a job's promise, or a child of it, has settled. */
export interface Settlement {
  name: string;
  isChild: boolean;
  /** Undefined for a child, and for a promise that is too large to be pushed. */
  promise: DurablePromise | undefined;
}

export interface SettlementChannel extends Channel {
  /** Subscribes to these promises as well. */
  add(ids: readonly string[]): Promise<void>;
}

/** Pushes the promises of jobs and their children as they settle. */
export interface SettlementSource {
  /**
   * Tells of the promises with these ids, for the caller with this key, until `signal` aborts.
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

/** The server that holds a deployment's jobs, and the source of news about them. */
export interface JobsEndpoint extends StoreEndpoint {
  /** Without it, promises are polled. */
  settlements?: SettlementSource | undefined;
}
