/** What has settled, told by the deployment's listeners: `listener.ts`, each a Durable Object. */
import { type Channel, ResonateUnavailable, readEvents } from "../../core/resonate/client.ts";
import type { PromiseRecord } from "../../core/resonate/protocol.ts";
import type { Feed } from "../../core/resonate/remote-store.ts";

/**
 * How many listeners a deployment has, and so connections to its Resonate server: a constant. A caller is always at the
 * same one, so that one who waits more than others is in the way of a part of them at most.
 */
const LISTENERS = 4;

/** How long nothing may come from a listener before it is taken for gone, in milliseconds: it writes every 15 seconds. */
const SILENCE = 60_000;

/** What there is of a Durable Object namespace here. */
export interface ListenerNamespace {
  idFromName(name: string): object;
  get(id: object): { fetch(url: string, init: RequestInit): Promise<Response> };
}

export function createFeed(namespace: ListenerNamespace): Feed {
  return {
    async open({ ids, caller, onNews, signal }): Promise<Channel> {
      const listener = namespace.get(namespace.idFromName(`listener ${shardOf(caller)}`));
      const ended = new AbortController();
      const until = AbortSignal.any([signal, ended.signal]);
      const body = JSON.stringify({ ids, caller });
      const response = await listener
        .fetch("https://listener/", { method: "POST", body, signal: until })
        .catch((error) =>
          Promise.reject(new ResonateUnavailable("its listener could not be reached", { cause: error })),
        );
      if (!response.ok || !response.body) {
        await response.body?.cancel();
        throw new ResonateUnavailable("its listener has no connection", { status: response.status });
      }
      const address = Promise.withResolvers<string>();
      const onData = (data: string) => {
        const event = JSON.parse(data) as { address: string } | PromiseRecord | { id: string };
        if ("address" in event) address.resolve(event.address);
        else onNews({ id: event.id, ...("state" in event && { promise: event }) });
      };
      const closed = readEvents(response.body, onData, { silence: SILENCE, signal: until }).finally(() => {
        ended.abort();
        address.reject(new ResonateUnavailable("its listener ended"));
      });
      return { address: await address.promise, closed };
    },
  };
}

function shardOf(caller: string): number {
  let sum = 0;
  for (let i = 0; i < caller.length; i++) sum += caller.charCodeAt(i);
  return sum % LISTENERS;
}
