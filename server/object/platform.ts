/** The part of the Durable Objects' interface that this server uses. */
import type { Row, SqlValue } from "../engine/sql.ts";

export interface ObjectStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): Cursor; readonly databaseSize: number };
  transactionSync<T>(work: () => T): T;
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
  /** A bookmark of the state now, or at a time within the last 30 days. A local installation has no history. */
  getCurrentBookmark(): Promise<string>;
  getBookmarkForTime(time: Date): Promise<string>;
  /** Restores a state at the object's next start; resolves with a bookmark that undoes the restore. */
  onNextSessionRestoreBookmark(bookmark: string): Promise<string>;
}

interface Cursor {
  toArray(): Row[];
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

export interface ObjectState {
  readonly storage: ObjectStorage;
  /** Ends the object. The next request starts it again. */
  abort(reason: string): void;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}
