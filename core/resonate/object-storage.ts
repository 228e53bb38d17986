export type SqlValue = string | number | null;
export type Row = Record<string, SqlValue>;

/** The part of a Durable Object's storage that is used. */
export interface ObjectStorage {
  readonly sql: { exec(statement: string, ...values: SqlValue[]): Cursor };
  transactionSync<T>(work: () => T): T;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}

interface Cursor {
  toArray(): Row[];
  readonly rowsRead?: number;
  readonly rowsWritten?: number;
}

/** Tables in an object's storage. `version` is raised with each change of them. */
export interface ObjectSchema {
  name: string;
  version: number;
  /** SQL that creates the tables; a text may have several statements. */
  tables: readonly string[];
}

/** The SQL of a Durable Object's storage. */
export class ObjectSql {
  /** The rows read and written so far, as the platform charges for them: each index update counts as a row. */
  readonly rows = { read: 0, written: 0 };
  readonly #storage: ObjectStorage;

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  all<T extends object = Row>(statement: string, ...values: SqlValue[]): T[] {
    const cursor = this.#storage.sql.exec(statement, ...values);
    // A cursor knows its rows only once it was read.
    const rows = cursor.toArray();
    this.rows.read += cursor.rowsRead ?? 0;
    this.rows.written += cursor.rowsWritten ?? 0;
    return rows as object[] as T[];
  }

  transaction<T>(work: () => T): T {
    return this.#storage.transactionSync(work);
  }
}

/**
 * Creates tables in a storage that does not have them.
 *
 * @throws {Error} if the storage has them in another version
 */
export function openSchemas(sql: ObjectSql, schemas: readonly ObjectSchema[]): void {
  sql.transaction(() => {
    sql.all("CREATE TABLE IF NOT EXISTS schemas (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT");
    const rows = sql.all<{ name: string; version: number }>("SELECT name, version FROM schemas");
    for (const { name, version, tables } of schemas) {
      const stored = rows.find((row) => row.name === name);
      if (stored?.version === version) continue;
      if (stored)
        throw new Error(
          `The tables of ${name} have schema version ${stored.version}, and this version of durable-mcp-edge needs ${version}: deploy the version that wrote them (docs/operations.md).`,
        );
      for (const statements of tables) sql.all(statements);
      sql.all("INSERT INTO schemas VALUES (?, ?)", name, version);
    }
  });
}
