import { type ObjectSql, openSchemas } from "../../core/resonate/index.ts";
import { SCHEMA_VERSION, TABLES } from "../engine/schema.ts";

/** The object's own settings, by name: the key, the time of the next sweep, the instance that serves streams. */
export class Notes {
  readonly #sql: ObjectSql;

  constructor(sql: ObjectSql) {
    this.#sql = sql;
  }

  get(name: string): string | undefined {
    return this.#sql.all("SELECT value FROM notes WHERE name = ?", name)[0]?.value as string | undefined;
  }

  set(name: string, value: string): void {
    this.#sql.all(
      "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      name,
      value,
    );
  }
}

const NOTES_TABLE = "CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";

/**
 * Creates the tables in a new object.
 *
 * @throws {Error} if the object has tables of another version
 */
export function openTables(sql: ObjectSql): Notes {
  openSchemas(sql, [{ name: "the Resonate object", version: SCHEMA_VERSION, tables: [NOTES_TABLE, ...TABLES] }]);
  return new Notes(sql);
}
