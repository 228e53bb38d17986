import { fetchFrom, type ResonateNamespace } from "../object-address.ts";
import { Sealing } from "../sealing.ts";
import type { Codec } from "./protocol.ts";

/** The server that holds a deployment's promises, and the worker group that executes them. */
export interface StoreEndpoint {
  /** The Resonate server's base URL. */
  url: string;
  token?: string | undefined;
  /** Sends requests to a server that is not reached over the network. */
  fetch?: typeof fetch | undefined;
  /** How the contents of promises are stored. Default: as they are. */
  codec?: Codec | undefined;
  group: string;
  /** The prefix of every promise id. */
  namespace: string;
}

/** The endpoint that a configuration's variables name. */
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
    codec: new Sealing(config.ENCRYPTION_KEYS),
    group: config.RESONATE_GROUP,
    namespace: config.RESONATE_NAMESPACE,
  };
}
