/** What has settled, told by the deployment's listeners: `listener.ts`, each a Durable Object. */
import type { SettlementSource } from "../../core/jobs/endpoint.ts";
import type { Channel } from "../../core/store/connections.ts";
import { ResonateUnavailable } from "../../core/store/failures.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";
import type { Joined, Tell, Wait } from "./listener.ts";
import type { AskedPlaces, PlacesAnswer } from "./quota-keeper.ts";

/**
 * How many listeners a deployment has, and so connections to its Resonate server: a constant. A caller is always at the
 * same one, so that one who waits more than others is in the way of a part of them at most.
 */
const LISTENERS = 4;

/** What there is of a Durable Object namespace here. */
export interface ListenerNamespace {
  idFromName(name: string): object;
  get(id: object): {
    listen(wait: Wait, tell: Tell): Promise<Answer>;
    places(asked: AskedPlaces): Promise<PlacesAnswer>;
  };
}

/** As it arrives: disposed of, it ends the wait. */
type Answer = Joined & Disposable;

export function createFeed(namespace: ListenerNamespace): SettlementSource {
  return {
    async open({ ids, caller, onNews, signal }): Promise<Channel> {
      const listener = listenerOf(namespace, caller);
      const closed = Promise.withResolvers<undefined>();
      const end = () => closed.resolve(undefined);
      const tell = (said: string) => {
        if (said === "" || signal.aborted) return;
        const event = JSON.parse(said) as PromiseRecord | { id: string };
        onNews({ id: event.id, ...("state" in event && { promise: event }) });
      };
      // Disposed of by the runtime when the listener has let go of it, or is no more.
      const listening = listener.listen({ ids, caller }, Object.assign(tell, { [Symbol.dispose]: end }));
      const leave = () => {
        end();
        listening.then((answer) => answer[Symbol.dispose]()).catch(() => {}); // Who could not be reached has nothing to end.
      };
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      const answer = await Promise.race([listening, closed.promise]).catch((error) => {
        throw new ResonateUnavailable("its listener could not be reached", { cause: error });
      });
      if (!answer || "status" in answer) {
        leave();
        throw new ResonateUnavailable("its listener has no connection", answer);
      }
      return { address: answer.address, closed: closed.promise };
    },
  };
}

/** The listener of a caller: the same one for all that it asks, of whatever edge. */
export function listenerOf(namespace: ListenerNamespace, caller: string) {
  let sum = 0;
  for (let i = 0; i < caller.length; i++) sum += caller.charCodeAt(i);
  return namespace.get(namespace.idFromName(`listener ${sum % LISTENERS}`));
}
