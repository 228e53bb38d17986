/** The part of the Durable Objects' interface that this server uses. */
import type { ObjectStorage } from "../../core/resonate/index.ts";

interface ServerStorage extends ObjectStorage {
  readonly sql: ObjectStorage["sql"] & { readonly databaseSize: number };
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>;
  /** A bookmark of the state now, or at a time within the last 30 days. A local installation has no history. */
  getCurrentBookmark(): Promise<string>;
  getBookmarkForTime(time: Date): Promise<string>;
  /** Restores a state at the object's next start; resolves with a bookmark that undoes the restore. */
  onNextSessionRestoreBookmark(bookmark: string): Promise<string>;
}

export interface ObjectState {
  readonly storage: ServerStorage;
  /** Stops the object. The next request starts it again. */
  abort(reason: string): void;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}
