/** What has settled, told by the deployment's listeners: `listener.ts`, each a Durable Object. */
import { type Channel, ResonateUnavailable } from "../../core/resonate/client.ts";
import type { PromiseRecord } from "../../core/resonate/protocol.ts";
import type { Feed } from "../../core/resonate/remote-store.ts";
import { type Ask, OPEN, type Wait } from "./listener.ts";

/**
 * How many listeners a deployment has, and so connections to its Resonate server: a constant. A caller is always at the
 * same one, so that one who waits more than others is in the way of a part of them at most.
 */
const LISTENERS = 4;

/** How long a listener may take to answer before it is taken for gone, in milliseconds. */
const SILENCE = OPEN + 15_000;

/** What there is of a Durable Object namespace here. */
export interface ListenerNamespace {
  idFromName(name: string): object;
  get(id: object): { fetch(url: string, init: RequestInit): Promise<Response> };
}

export function createFeed(namespace: ListenerNamespace): Feed {
  return {
    async open({ ids, caller, onNews, signal }): Promise<Channel> {
      const listener = namespace.get(namespace.idFromName(`listener ${shardOf(caller)}`));
      const ask = async (body: Wait | Ask) => {
        const response = await listener
          .fetch("https://listener/", { method: "POST", body: JSON.stringify(body), signal })
          .catch((error) =>
            Promise.reject(new ResonateUnavailable("its listener could not be reached", { cause: error })),
          );
        if (response.ok) return response.json();
        await response.body?.cancel();
        throw new ResonateUnavailable("its listener has no connection", { status: response.status });
      };
      const { wait, address } = (await ask({ ids, caller })) as { wait: string; address: string };
      const silent = Promise.withResolvers<never>();
      const listen = async (): Promise<never> => {
        for (;;) {
          const timer = setTimeout(() => silent.reject(new ResonateUnavailable("its listener is silent")), SILENCE);
          const news = await Promise.race([ask({ wait }), silent.promise]).finally(() => clearTimeout(timer));
          for (const event of news as (PromiseRecord | { id: string })[]) {
            onNews({ id: event.id, ...("state" in event && { promise: event }) });
          }
        }
      };
      return { address, closed: listen().catch((error) => (signal.aborted ? undefined : error)) };
    },
  };
}

function shardOf(caller: string): number {
  let sum = 0;
  for (let i = 0; i < caller.length; i++) sum += caller.charCodeAt(i);
  return sum % LISTENERS;
}
