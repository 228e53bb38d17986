/** A host's database as the store uses it. Statements run synchronously. */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

export interface Sql {
  /** Returns all rows. */
  all(statement: string, ...values: SqlValue[]): Row[];
  run(statement: string, ...values: SqlValue[]): void;
  /** Runs `work` and commits. Rolls back and rethrows when it throws. */
  transaction<T>(work: () => T): T;
  /** Runs `work` within a transaction. Undoes only what `work` wrote, and rethrows, when it throws. */
  attempt<T>(work: () => T): T;
  close(): void;
}
