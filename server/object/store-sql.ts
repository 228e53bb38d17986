import { ObjectSql } from "../../core/resonate/index.ts";
import type { Sql, SqlValue } from "../engine/sql.ts";

/** A Durable Object's SQL as the store uses it. A commit is durable when `storage.sync()` has resolved. */
export class StoreSql extends ObjectSql implements Sql {
  run(statement: string, ...values: SqlValue[]): void {
    this.all(statement, ...values);
  }

  /** Within a transaction, `transactionSync` creates a savepoint. */
  attempt<T>(work: () => T): T {
    return this.transaction(work);
  }

  close(): void {} // The platform closes the storage with the object.
}
