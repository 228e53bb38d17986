/** A host's database as the store uses it. Statements run synchronously. */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The database has rolled the transaction back by itself, as SQLite does when the disk is full. `cause` is its error. */
export class TransactionOver extends Error {
  override name = "TransactionOver";
}

export interface Sql {
  all(statement: string, ...values: SqlValue[]): Row[];
  run(statement: string, ...values: SqlValue[]): void;
  /** Runs `work` and commits. Rolls back and rethrows when it throws. */
  transaction<T>(work: () => T): T;
  /**
   * Runs `work` within a transaction. Undoes only what `work` wrote, and rethrows, when it throws.
   *
   * @throws {TransactionOver} when the database has rolled the transaction back
   */
  attempt<T>(work: () => T): T;
  close(): void;
}
