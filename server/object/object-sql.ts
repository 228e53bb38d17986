import type { Row, Sql, SqlValue } from "../engine/sql.ts";
import type { ObjectStorage } from "./platform.ts";

/** The storage of a Durable Object as the store takes it. What is committed is durable when `storage.sync()` has resolved. */
export class ObjectSql implements Sql {
  readonly #storage: ObjectStorage;
  /** Rows read and written so far, as the platform counts and charges them: a change of an index is a row. */
  readonly rows = { read: 0, written: 0 };

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  all(statement: string, ...values: SqlValue[]): Row[] {
    const cursor = this.#storage.sql.exec(statement, ...values);
    const rows = cursor.toArray();
    this.rows.read += cursor.rowsRead;
    this.rows.written += cursor.rowsWritten;
    return rows;
  }

  run(statement: string, ...values: SqlValue[]): void {
    this.all(statement, ...values);
  }

  transaction<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }

  /** Within a transaction it is a savepoint. */
  attempt<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }

  /** An object's storage stays open for as long as the object is there. */
  close(): void {}
}
