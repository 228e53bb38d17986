/** What a host gives the store of its database. Statements run at once; nothing of it waits. */
export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

export interface Sql {
  /** The rows that a statement gives, all of them. */
  all(statement: string, ...values: SqlValue[]): Row[];
  /** Runs a statement for what it changes. */
  run(statement: string, ...values: SqlValue[]): void;
  /** Runs `work` and commits. Undoes everything and rethrows when it throws. */
  transaction<T>(work: () => T): T;
  /** Runs `work` within a transaction. Undoes what `work` wrote, and no more, and rethrows when it throws. */
  attempt<T>(work: () => T): T;
  close(): void;
}
