export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The part of a Durable Object's storage that is used. */
export interface ObjectStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): Cursor };
  transactionSync<T>(work: () => T): T;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}

interface Cursor {
  toArray(): Row[];
  readonly rowsRead?: number;
  readonly rowsWritten?: number;
}

/** The SQL of a Durable Object's storage. */
export class ObjectSql {
  /** The rows read and written so far, as the platform charges for them: each index update counts as a row. */
  readonly rows = { read: 0, written: 0 };
  readonly #storage: ObjectStorage;

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  all<T extends object = Row>(statement: string, ...values: SqlValue[]): T[] {
    const cursor = this.#storage.sql.exec(statement, ...values);
    // A cursor knows its rows only once it was read.
    const rows = cursor.toArray();
    this.rows.read += cursor.rowsRead ?? 0;
    this.rows.written += cursor.rowsWritten ?? 0;
    return rows as object[] as T[];
  }

  transaction<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }
}
