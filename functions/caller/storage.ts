export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The part of a Durable Object's storage that is used. */
export interface CallerStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): { toArray(): Row[] } };
  transactionSync<T>(work: () => T): T;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}
