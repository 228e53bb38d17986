/** Where a deployment's promises are, and who helps to look after them. */

import type { ResonateClient } from "./client.ts";
import type { DurablePromise } from "./codec.ts";
import type { Channel } from "./connections.ts";
import { fetchFrom, type ResonateNamespace } from "./object-address.ts";
import type { PromiseRecord } from "./protocol.ts";

/** What was pushed over a channel: that a job's promise, or a child of it, has settled. */
export interface Settled {
  name: string;
  isChild: boolean;
  /** Undefined for a child, and for a promise that is too large to be pushed. */
  promise: DurablePromise | undefined;
}

/** News of promises and their children as they settle, from whoever is connected to the Resonate server. */
export interface Feed {
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
  }): Promise<Channel>;
}

/** Where a deployment's promises are, and who executes them. */
export interface StoreEndpoint {
  /** The Resonate server's base URL. */
  url: string;
  token?: string | undefined;
  /** What sends the requests, where it is not the network. */
  fetch?: typeof fetch | undefined;
  /** See {@link ResonateClient}. */
  encryptionKeys?: string | undefined;
  /** The worker group. */
  group: string;
  /** What stands before every promise id. */
  namespace: string;
  /** Who tells of settlements; without it promises are read with pauses. */
  feed?: Feed | undefined;
}

/** The place that a configuration's variables name. */
export function endpointOf(config: {
  RESONATE_URL: string;
  RESONATE_TOKEN?: string | undefined;
  ENCRYPTION_KEYS?: string | undefined;
  RESONATE_GROUP: string;
  RESONATE_NAMESPACE: string;
  RESONATE?: ResonateNamespace | undefined;
}): StoreEndpoint {
  return {
    ...(config.RESONATE && { fetch: fetchFrom(config.RESONATE) }),
    url: config.RESONATE_URL,
    token: config.RESONATE_TOKEN,
    encryptionKeys: config.ENCRYPTION_KEYS,
    group: config.RESONATE_GROUP,
    namespace: config.RESONATE_NAMESPACE,
  };
}
