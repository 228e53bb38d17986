/** What there is of a Durable Object here: the part of the platform's interface that is used. */
import type { Row, SqlValue } from "../sql.ts";

export interface ObjectStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): Cursor };
  transactionSync<T>(work: () => T): T;
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}

interface Cursor {
  toArray(): Row[];
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

export interface ObjectState {
  readonly storage: ObjectStorage;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}
