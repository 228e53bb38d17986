/** A host's database as the store uses it. Statements run synchronously. */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The database has rolled the transaction back by itself, as SQLite does when the disk is full. `cause` is its error. */
export class TransactionRolledBack extends Error {
  override name = "TransactionRolledBack";
}

export interface Sql {
  all(statement: string, ...values: SqlValue[]): Row[];
  run(statement: string, ...values: SqlValue[]): void;
  /** Runs `work` and commits. Rolls back and rethrows if it throws. */
  transaction<T>(work: () => T): T;
  /**
   * Runs `work` within a transaction. Undoes only what `work` wrote, and rethrows, if it throws.
   *
   * @throws {TransactionRolledBack} if the database has rolled the transaction back
   */
  attempt<T>(work: () => T): T;
  close(): void;
}
