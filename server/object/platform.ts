/** What there is of a Durable Object here: the part of the platform's interface that is used. */
import type { Row, SqlValue } from "../engine/sql.ts";

export interface ObjectStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): Cursor; readonly databaseSize: number };
  transactionSync<T>(work: () => T): T;
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
  /** Of what is kept now, or was at a time of the last 30 days. On a machine of one's own there is no history. */
  getCurrentBookmark(): Promise<string>;
  getBookmarkForTime(time: Date): Promise<string>;
  /** What the object's next start begins with; resolves to the bookmark of what it undoes. */
  onNextSessionRestoreBookmark(bookmark: string): Promise<string>;
}

interface Cursor {
  toArray(): Row[];
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

export interface ObjectState {
  readonly storage: ObjectStorage;
  /** Ends the object: the next request starts it anew. */
  abort(reason: string): void;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}
