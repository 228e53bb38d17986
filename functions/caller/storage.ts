export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The part of a Durable Object's storage that is used. */
export interface CallerStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): { toArray(): Row[]; readonly rowsWritten?: number } };
  transactionSync<T>(work: () => T): T;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}

/** A storage that counts the rows that it writes, as the platform bills them. */
export class CountedStorage implements CallerStorage {
  written = 0;
  readonly sql: CallerStorage["sql"];
  readonly #storage: CallerStorage;

  constructor(storage: CallerStorage) {
    this.#storage = storage;
    this.sql = {
      exec: (statement, ...values) => {
        const cursor = storage.sql.exec(statement, ...values);
        // A cursor knows its written rows only once it was read.
        const toArray = () => {
          const rows = cursor.toArray();
          this.written += cursor.rowsWritten ?? 0;
          return rows;
        };
        return { toArray };
      },
    };
  }

  transactionSync<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }

  getAlarm(): Promise<number | null> {
    return this.#storage.getAlarm();
  }

  setAlarm(time: number): Promise<void> {
    return this.#storage.setAlarm(time);
  }
}
