import type { PromiseRecord } from "./protocol.ts";

/** Called with a promise that has settled; without it if its settlement may have been missed, until it is watched again. */
export type SettlementListener = (promise?: PromiseRecord) => void;

/** For whom a listener listens, in place of the listener of an earlier execution. */
export interface ListenerKey {
  by: unknown;
  execution: number;
}

/** Remembers promises, and reports when they settle. */
export interface PromiseWatch {
  /**
   * Resolves with the promise, or undefined if there is none. Calls `listener` when it settles. With `fresh`, asks the server
   * even if a pending promise is remembered. A promise that settled before `since` is not taken from memory: it may have been
   * removed, and another one created under its id. `since`: in milliseconds since the epoch, by the server's clock.
   */
  watch(
    id: string,
    fresh: boolean,
    listener: SettlementListener,
    since?: number,
    key?: ListenerKey,
  ): Promise<PromiseRecord | undefined>;
  /** Forgets a listener. */
  leave(id: string, by: unknown): void;
  /** Must be called when a promise has been created. One of the same id that was removed before is forgotten. */
  noteCreated(promise: Pick<PromiseRecord, "id" | "createdAt">): void;
}
