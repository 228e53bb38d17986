/** Subscribes to settlements at the deployment's listeners: see `listener.ts`. */
import type { SettlementChannel, SettlementSource } from "../../core/jobs/index.ts";
import { type PromiseRecord, ResonateUnavailable } from "../../core/resonate/index.ts";

/**
 * How many listeners a deployment has, each with one connection to the Resonate server. A caller always has the same listener,
 * so that a caller with many waits disturbs only some of the others.
 */
const LISTENER_COUNT = 4;

/** A subscription to some promises. */
export interface Wait {
  /** The ids of the promises. Messages about their children are passed on as well. */
  ids: readonly string[];
  /** The key of the caller who waits. */
  caller: string;
}

/**
 * Passes a message on to the waiter, as JSON: a promise, or only the `id` of one that is too large. An empty text checks that
 * the waiter still exists. The wait is over when it is disposed of.
 */
interface SendToWaiter extends Partial<Disposable> {
  (message: string): unknown;
}

/** The address at which the promises are listened to, with the object whose disposal ends the wait; or a refusal. */
export type Joined = { address: string; wait: OpenWait } | { status: number };

/** A wait that goes on, to which promises can be added. */
export interface OpenWait {
  add(ids: readonly string[]): unknown;
}

/** The part of a Durable Object namespace's interface that is used here. */
export interface ListenerNamespace {
  idFromName(name: string): object;
  get(id: object): {
    listen(wait: Wait, tell: SendToWaiter): Promise<Answer>;
  };
}

/** An answer as it arrives: disposing of it ends the wait. */
type Answer = Joined & Disposable;

export function createFeed(namespace: ListenerNamespace): SettlementSource {
  return {
    async open({ ids, caller, onNews, signal }): Promise<SettlementChannel> {
      const listener = listenerOf(namespace, caller);
      const closed = Promise.withResolvers<undefined>();
      const end = () => closed.resolve(undefined);
      const receive = (message: string) => {
        if (message === "" || signal.aborted) return;
        const event = JSON.parse(message) as PromiseRecord | { id: string };
        onNews({ id: event.id, ...("state" in event && { promise: event }) });
      };
      // The runtime disposes of it when the listener has dropped it or is gone.
      const listening = listener.listen({ ids, caller }, Object.assign(receive, { [Symbol.dispose]: end }));
      const leave = () => {
        end();
        listening.then((answer) => answer[Symbol.dispose]()).catch(() => {}); // An unreachable listener has no wait to end.
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
      const add = async (more: readonly string[]) => void (await answer.wait.add(more));
      return { address: answer.address, closed: closed.promise, add };
    },
  };
}

/** The listener of a caller, the same in every isolate. */
function listenerOf(namespace: ListenerNamespace, caller: string) {
  let sum = 0;
  for (let i = 0; i < caller.length; i++) sum += caller.charCodeAt(i);
  return namespace.get(namespace.idFromName(`listener ${sum % LISTENER_COUNT}`));
}
