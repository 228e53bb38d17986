export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The part of a Durable Object's storage that is used. */
export interface CallerStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): { toArray(): Row[]; readonly rowsWritten?: number } };
  transactionSync<T>(work: () => T): T;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}

/** The SQL of a storage. It counts the rows that it writes, as the platform bills them. */
export class Sql {
  written = 0;
  readonly #storage: CallerStorage;

  constructor(storage: CallerStorage) {
    this.#storage = storage;
  }

  all(statement: string, ...values: SqlValue[]): Row[] {
    const cursor = this.#storage.sql.exec(statement, ...values);
    const rows = cursor.toArray();
    // A cursor knows its written rows only once it was read.
    this.written += cursor.rowsWritten ?? 0;
    return rows;
  }

  transaction<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }
}
