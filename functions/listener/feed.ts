/** What has settled, told by the deployment's listeners: `listener.ts`, each a Durable Object. */
import type { SettlementSource } from "../../core/jobs/endpoint.ts";
import type { Channel } from "../../core/store/connections.ts";
import { ResonateUnavailable } from "../../core/store/failures.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";

/**
 * How many listeners a deployment has, and so connections to its Resonate server: a constant. A caller is always at the
 * same one, so that one who waits more than others is in the way of a part of them at most.
 */
const LISTENERS = 4;

/** What a wait begins with. */
export interface Wait {
  /** The promises, by id. What is told of their children is told, too. */
  ids: readonly string[];
  /** Who waits: the caller's key. */
  caller: string;
}

/**
 * Tells whoever waits what the Resonate server has said, as JSON: a promise, or only the `id` of one that is too large.
 * Nothing (`""`) to see whether he is there. Disposed of, the wait is over.
 */
export interface Tell extends Partial<Disposable> {
  (said: string): unknown;
}

/** What is answered to a wait: what the promises are to be listened to at, and what ends it when it is disposed of; or why there is none. */
export type Joined = { address: string; held: object } | { status: number };

/** What there is of a Durable Object namespace here. */
export interface ListenerNamespace {
  idFromName(name: string): object;
  get(id: object): {
    listen(wait: Wait, tell: Tell): Promise<Answer>;
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
function listenerOf(namespace: ListenerNamespace, caller: string) {
  let sum = 0;
  for (let i = 0; i < caller.length; i++) sum += caller.charCodeAt(i);
  return namespace.get(namespace.idFromName(`listener ${sum % LISTENERS}`));
}
