import type { Row, Sql, SqlValue } from "../engine/sql.ts";
import type { ObjectStorage } from "./platform.ts";

/** A Durable Object's storage as the store uses it. A commit is durable when `storage.sync()` has resolved. */
export class ObjectSql implements Sql {
  readonly #storage: ObjectStorage;
  /** The rows read and written so far, as the platform charges for them: each index update counts as a row. */
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

  /** Within a transaction, `transactionSync` makes a savepoint. */
  attempt<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }

  close(): void {} // The platform closes the storage with the object.
}
